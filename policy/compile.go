package policy

import (
	"cmp"
	"fmt"
	"math/bits"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// compile fills in c's defaults and makes its rules, or returns every fault of c, each a *FieldError. Without secrets
// it reads no variable and no file, and leaves out what those name.
func compile(c Config, secrets bool) (*Rules, []error) {
	k := &compiler{
		secrets:  secrets,
		patterns: patterns{mux: http.NewServeMux(), rules: map[string]int{}},
		names:    map[string]int{},
		peers:    newPeers(c.TrustedProxies),
	}
	k.settings(&c)
	k.ip, k.v6bits = IPPrefix(c.IPv6Prefix, c.TrustedProxies...), c.IPv6Prefix

	rules := &Rules{peers: k.peers}
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
	secrets  bool // read variables and files
	patterns patterns
	names    map[string]int // of rules
	peers    peers
	ip       Subject
	v6bits   int
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

	r := &Rule{Name: c.Name, Match: c.Match, OnOutage: c.OnOutage, Denial: c.Denial, Forbidden: c.Denial}
	r.Denial.Status = cmp.Or(c.Denial.Status, http.StatusTooManyRequests)
	r.Forbidden.Status = cmp.Or(c.Denial.Status, http.StatusForbidden)
	k.cost(path, c, r)
	r.exempt = k.list(path+".exempt", c.Exempt, p, c.Match == always)
	r.deny = k.list(path+".deny", c.Deny, p, c.Match == always)
	k.limits(path, c, r, p)
	return r, p
}

// limits compiles the limits of a rule.
func (k *compiler) limits(path string, c *RuleConfig, r *Rule, p *pattern) {
	for i := range c.Limits {
		if !c.Limits[i].Shadow {
			r.enforced++
		}
	}
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
		if r.enforced > 1 || l.Shadow { // so that a shadow comes and goes without a change of the others' keys
			l.KeyRule += "/" + l.Name // unambiguous: no rule's name has a slash
		}
		r.Limits = append(r.Limits, l)
	}
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
	if d.Status != 0 && (d.Status < 400 || d.Status > 599) {
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
	l := Limit{Name: c.Name, SubjectName: c.Subject, Shadow: c.Shadow}
	e, known := find(c.Algorithm)
	switch {
	case known:
		c.Algorithm, l.Algorithm = e.name, e.name
		k.maxDelay(path+".max_delay", c, e)
		l.Strategy = k.strategy(path, e, c.Limit, c.MaxDelay)
	case c.Algorithm == "":
		k.fault(path+".algorithm", "missing: want one of %s", strings.Join(Algorithms(), ", "))
	default:
		k.fault(path+".algorithm", "%q: want one of %s", c.Algorithm, strings.Join(Algorithms(), ", "))
	}
	subject, key := k.subject(path+".subject", c.Subject, p, always)
	if subject != nil {
		l.Subject, l.key = Or(subject, k.ip), key
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
	k.overrides(path+".overrides", &l, c, e, known)
	return l
}

// strategy makes a strategy, nil if it is faulty. A constructor names the first fault alone, so a burst below its least
// is reported here, and what is left is tried without it.
func (k *compiler) strategy(path string, e entry, limit algorithm.Limit, longest time.Duration) sluice.Strategy {
	least := int64(0)
	if e.burst {
		least = 1
	}
	limit = within(limit, e, longest)
	if limit.Burst < least {
		k.fault(path+".burst", "%d: want at least %d", limit.Burst, least)
		limit.Burst = least
	}
	st, err := e.new(limit)
	if err == nil {
		return st
	}
	_, msg, _ := strings.Cut(err.Error(), ": ") // the constructor's package
	if strings.HasPrefix(msg, "Burst") {
		k.fault(path+".burst", "%s", msg)
		return nil
	}
	k.fault(path+".limit", "%s", msg)
	return nil
}

func (k *compiler) maxDelay(path string, c *LimitConfig, e entry) {
	switch {
	case c.MaxDelay < 0:
		k.fault(path, "%v: want at least 0", c.MaxDelay)
	case c.MaxDelay > 0 && !e.queue:
		k.fault(path, "%v: want it with leaky_bucket alone, %s holds no request", c.MaxDelay, e.name)
	}
}

// within lowers the burst of a queue so far that nobody is held longer than longest, if there is such a bound.
func within(l algorithm.Limit, e entry, longest time.Duration) algorithm.Limit {
	if !e.queue || longest <= 0 {
		return l
	}
	if room := queueRoom(l, longest); l.Burst == 0 || l.Burst > room {
		l.Burst = room
	}
	return l
}

// queueRoom is the largest burst under which no request is held longer than longest: the one now leaving, and those
// that leave within that time.
func queueRoom(l algorithm.Limit, longest time.Duration) int64 {
	if l.Count < 1 || l.Period < 1 {
		return 1 // faulty, and reported
	}
	high, low := bits.Mul64(uint64(longest), uint64(l.Count))
	if high >= uint64(l.Period) {
		return algorithm.Bound // more than any burst
	}
	ahead, _ := bits.Div64(high, low, uint64(l.Period))
	return 1 + int64(min(ahead, algorithm.Bound-1))
}
