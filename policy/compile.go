package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/algorithm"
)

// compile fills in c's defaults and makes its rules, or returns every fault of c, each a *FieldError.
func compile(c Config) (*Rules, []error) {
	k := &compiler{patterns: patterns{mux: http.NewServeMux(), rules: map[string]int{}}, names: map[string]int{}}
	k.settings(&c)
	k.ip = IPPrefix(c.IPv6Prefix, c.TrustedProxies...)

	rules := &Rules{}
	var matched []*pattern
	for i := range c.Rules {
		rule, p := k.rule(&c.Rules[i], i)
		rules.all = append(rules.all, rule)
		matched = append(matched, p)
		if rule.Match == always {
			rules.always = append(rules.always, rule)
		}
	}
	if len(k.faults) > 0 {
		return nil, k.faults
	}
	for i, p := range matched {
		if p != nil {
			rules.tree.add(p, append([]*Rule{rules.all[i]}, rules.always...))
		}
	}
	rules.config = c
	return rules, nil
}

// always is the Match of a rule that holds in addition to the pattern that wins.
const always = "always"

type compiler struct {
	faults   []error
	patterns patterns
	names    map[string]int // of rules
	ip       Subject
}

func (k *compiler) fault(path, format string, args ...any) {
	k.faults = append(k.faults, &FieldError{Path: path, Msg: fmt.Sprintf(format, args...)})
}

// rule compiles one rule. Its pattern is nil for always and for a faulty one.
func (k *compiler) rule(c *RuleConfig, number int) (*Rule, *pattern) {
	path := fmt.Sprintf("rules[%d]", number)
	if k.name(path+".name", c.Name) {
		if other, ok := k.names[c.Name]; ok {
			k.fault(path+".name", "%q is also the name of rules[%d]: want another", c.Name, other)
		} else {
			k.names[c.Name] = number
		}
	}
	p := k.match(path+".match", c.Match, number)
	c.OnOutage = cmp.Or(c.OnOutage, Local)
	oneOf(k, path+".on_outage", c.OnOutage, Local, Allow, Deny)
	k.denial(path+".denial", &c.Denial)
	if len(c.Limits) == 0 {
		k.fault(path+".limits", "missing: want at least one limit")
	}

	r := &Rule{Name: c.Name, Match: c.Match, OnOutage: c.OnOutage, Denial: c.Denial}
	names := map[string]int{}
	for i := range c.Limits {
		at := fmt.Sprintf("%s.limits[%d]", path, i)
		l := k.limit(at, &c.Limits[i], p, c.Match == always)
		if l.Name != "" {
			if other, ok := names[l.Name]; ok {
				k.fault(at+".name", "%q is also the name of limits[%d]: want another", l.Name, other)
			} else {
				names[l.Name] = i
			}
		}
		l.KeyRule = c.Name
		if len(c.Limits) > 1 {
			l.KeyRule += "/" + l.Name // unambiguous: no rule's name has a slash
		}
		r.Limits = append(r.Limits, l)
	}
	return r, p
}

func (k *compiler) match(path, text string, rule int) *pattern {
	switch text {
	case always:
		return nil
	case "":
		k.fault(path, `missing: want a pattern such as "POST /login", or %s`, always)
		return nil
	}
	p, err := k.patterns.add(text, rule)
	if err != nil {
		k.fault(path, "%v", err)
		return nil
	}
	return p
}

func (k *compiler) denial(path string, d *Denial) {
	d.Status = cmp.Or(d.Status, http.StatusTooManyRequests)
	if d.Status < 400 || d.Status > 599 {
		k.fault(path+".status", "%d: want 400 to 599", d.Status)
	}
	switch {
	case d.Body == "" && d.Type != "":
		k.fault(path+".body", "missing: want the body that type %q is of", d.Type)
	case d.Body != "":
		d.Type = cmp.Or(d.Type, "text/plain; charset=utf-8")
		if kind, _, _ := strings.Cut(d.Type, ";"); !isMediaType(strings.TrimSpace(kind)) || !isPrintable(d.Type) {
			k.fault(path+".type", "%q: want a media type such as text/plain", d.Type)
		}
	}
}

// limit compiles one limit; what is faulty of it stays zero. p is the rule's pattern, nil if that is faulty or always.
func (k *compiler) limit(path string, c *LimitConfig, p *pattern, always bool) Limit {
	l := Limit{Name: c.Name, SubjectName: c.Subject}
	e, known := find(c.Algorithm)
	switch {
	case known:
		c.Algorithm, l.Algorithm = e.name, e.name
		k.strategy(path, &l, e, c.Limit)
	case c.Algorithm == "":
		k.fault(path+".algorithm", "missing: want one of %s", strings.Join(Algorithms(), ", "))
	default:
		k.fault(path+".algorithm", "%q: want one of %s", c.Algorithm, strings.Join(Algorithms(), ", "))
	}
	subject := k.subject(path+".subject", c.Subject, p, always)
	if subject != nil {
		l.Subject = Or(subject, k.ip)
	}
	switch {
	case c.Name != "":
		if !k.name(path+".name", c.Name) {
			l.Name = ""
		}
	case known && subject != nil:
		l.Name = e.name + "-" + c.Subject
		if msg := badName(l.Name); msg != "" {
			k.fault(path+".name", "missing, and the default %q is none: %s", l.Name, msg)
			l.Name = ""
		}
	}
	c.Name = l.Name
	return l
}

// strategy makes l's strategy. A constructor names the first fault alone, so a burst below its least is reported here,
// and what is left is tried without it.
func (k *compiler) strategy(path string, l *Limit, e entry, limit algorithm.Limit) {
	least := int64(0)
	if e.burst {
		least = 1
	}
	if limit.Burst < least {
		k.fault(path+".burst", "%d: want at least %d", limit.Burst, least)
		limit.Burst = least
	}
	st, err := e.new(limit)
	if err == nil {
		l.Strategy = st
		return
	}
	_, msg, _ := strings.Cut(err.Error(), ": ") // the constructor's package
	if strings.HasPrefix(msg, "Burst") {
		k.fault(path+".burst", "%s", msg)
		return
	}
	k.fault(path+".limit", "%s", msg)
}
