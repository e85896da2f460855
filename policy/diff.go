package policy

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Effect is what an edit does to what subjects have used of their limits.
type Effect string

// The effects of a [Change], the gravest last.
const (
	EffectNone     Effect = ""               // none on usage
	EffectKeeps    Effect = "keeps usage"    // what is spent stays spent
	EffectGone     Effect = "gone"           // refuses nobody any more
	EffectEnforced Effect = "newly enforced" // refuses from now on
	EffectAfresh   Effect = "starts afresh"  // usage is not found: everybody has a full burst once more
)

// Change is one difference between two sets of rules.
type Change struct {
	Rule    string   // "": of the whole file
	Limit   string   // "": of the whole rule
	Field   string   // in the words of a rule file, such as store.prefix; "" where Limit is given
	Effect  Effect   // on usage
	Why     []string // what was edited, and what follows; no secret is quoted
	Restart bool     // a reload refuses it: the processes must be started again
}

// Difference is all that an edit changes.
type Difference struct {
	Limits   []Change // in the order of the new rules, then those that are gone
	Settings []Change // of the whole file, then of its rules
	Same     int      // limits that are as they were
}

// StartsAfresh tells whether some limit loses what was used of it.
func (d Difference) StartsAfresh() bool {
	return slices.ContainsFunc(slices.Concat(d.Limits, d.Settings), func(c Change) bool { return c.Effect == EffectAfresh })
}

// Restart tells whether the processes must be started again for all of it to hold.
func (d Difference) Restart() bool {
	return slices.ContainsFunc(d.Settings, func(c Change) bool { return c.Restart })
}

// Diff tells what becomes of each limit, and of what was used of it, when was is replaced by is. A limit is the same as
// before if its keys are: if rule, limit, algorithm and subject are. It reads no variable and no file, so that it also
// works where there are no secrets. The error is that of [Config.Check] for the first of the two that has faults.
func Diff(was, is Config) (Difference, error) {
	before, faults := compile(was.clone(), false)
	if len(faults) == 0 {
		var after *Rules
		if after, faults = compile(is.clone(), false); len(faults) == 0 {
			return diff(before, after), nil
		}
	}
	return Difference{}, errors.Join(faults...)
}

func diff(was, is *Rules) Difference {
	d := Difference{Settings: settingChanges(was.config, is.config)}
	before, after := placesOf(was), placesOf(is)
	pairs := pair(before, after)
	for i := range after {
		n := &after[i]
		o := pairs[n]
		if o == nil {
			d.Limits = append(d.Limits, n.added(is.config.Mode))
			continue
		}
		if c := o.change(n); len(c.Why) > 0 {
			d.Limits = append(d.Limits, c)
		} else {
			d.Same++
		}
		o.paired = true
	}
	for i := range before {
		if o := &before[i]; !o.paired {
			d.Limits = append(d.Limits, o.change(nil))
		}
	}
	hid, hides := hiders(was.config), hiders(is.config)
	for i := range after {
		d.Settings = append(d.Settings, ruleChanges(before, &after[i], hid, hides)...)
	}
	return d
}

// hiders returns, by rule, the more specific rules that keep requests from it.
func hiders(c Config) map[string][]string {
	by := map[string][]string{}
	for _, h := range c.Hidden() {
		for _, broader := range h.Hides {
			by[broader] = append(by[broader], h.Rule)
		}
	}
	return by
}

// place is one limit in its rules.
type place struct {
	rule   *Rule
	config *RuleConfig
	number int // of the limit in its rule
	paired bool
}

func (p *place) limit() *Limit             { return &p.rule.Limits[p.number] }
func (p *place) limitConfig() *LimitConfig { return &p.config.Limits[p.number] }

func placesOf(r *Rules) []place {
	var places []place
	for i, rule := range r.all {
		for j := range rule.Limits {
			places = append(places, place{rule: rule, config: &r.config.Rules[i], number: j})
		}
	}
	return places
}

// pair finds for each limit the one that it was before: in the same rule the one with the same algorithm and subject, else
// with the same Key.Rule, else with the same algorithm or subject; else likewise in a rule with the same match whose name
// is gone.
func pair(before, after []place) map[*place]*place {
	pairs, taken := map[*place]*place{}, map[*place]bool{}
	find := func(same func(o, n *place) bool) {
		for i := range after {
			n := &after[i]
			for j := range before {
				if o := &before[j]; pairs[n] == nil && !taken[o] && same(o, n) {
					pairs[n], taken[o] = o, true
				}
			}
		}
	}
	names := func(places []place) map[string]bool {
		found := map[string]bool{}
		for _, p := range places {
			found[p.rule.Name] = true
		}
		return found
	}
	oldNames, newNames := names(before), names(after)
	sameRule := func(o, n *place) bool { return o.rule.Name == n.rule.Name }
	renamed := func(o, n *place) bool {
		return o.rule.Match == n.rule.Match && !newNames[o.rule.Name] && !oldNames[n.rule.Name]
	}
	algorithm := func(o, n *place) bool { return o.limit().Algorithm == n.limit().Algorithm }
	subject := func(o, n *place) bool { return subjectSpelled(o.limit()) == subjectSpelled(n.limit()) }

	keys := func(o, n *place) bool { return o.limit().KeyRule == n.limit().KeyRule && sameRule(o, n) }

	find(func(o, n *place) bool { return keys(o, n) && algorithm(o, n) && subject(o, n) })
	find(func(o, n *place) bool { return sameRule(o, n) && algorithm(o, n) && subject(o, n) })
	find(keys)
	for _, rule := range []func(o, n *place) bool{sameRule, renamed} {
		find(func(o, n *place) bool { return rule(o, n) && algorithm(o, n) && subject(o, n) })
		find(func(o, n *place) bool { return rule(o, n) && subject(o, n) })
		find(func(o, n *place) bool { return rule(o, n) && algorithm(o, n) })
	}
	return pairs
}

// subjectSpelled is a limit's subject in one spelling.
func subjectSpelled(l *Limit) string {
	kind, name, named := strings.Cut(l.SubjectName, ":")
	if named && kind == "header" {
		return "header:" + http.CanonicalHeaderKey(name)
	}
	return l.SubjectName
}
