package policy

import (
	"fmt"

	"github.com/sluice-go/sluice/algorithm"
)

// added is the change of a limit that was not there before.
func (p *place) added(mode Mode) Change {
	l := p.limit()
	c := Change{Rule: p.rule.Name, Limit: l.Name, Effect: EffectEnforced, Why: []string{"new: " + limitText(l)}}
	if l.Shadow || mode == ModeShadow {
		c.Effect = EffectNone
		c.Why = append(c.Why, "in the shadow: it refuses nobody")
	}
	return c
}

// change is what becomes of a limit that is n now; nil: that is gone. Why is empty where nothing has changed.
func (p *place) change(n *place) Change {
	o := p.limit()
	if n == nil {
		return Change{Rule: p.rule.Name, Limit: o.Name, Effect: EffectGone,
			Why: []string{"was: " + limitText(o), "its keys wait for their TTL, so a roll-back finds what was used"}}
	}
	l := n.limit()
	c := Change{Rule: n.rule.Name, Limit: l.Name}
	p.keys(n, &c)
	if c.Effect != EffectAfresh {
		numbers(o, l, &c)
	} else if was, is := o.Strategy.Limit(), l.Strategy.Limit(); was != is {
		c.note(EffectAfresh, "limit %v, was %v", is, was)
	}
	switch {
	case o.Shadow && !l.Shadow:
		c.note(EffectEnforced, "no shadow any more: it refuses")
	case l.Shadow && !o.Shadow:
		c.note(EffectGone, "in the shadow: it refuses nobody any more")
	}
	p.overrides(n, &c)
	return c
}

// note adds a reason, and its effect if that is graver than those before it.
func (c *Change) note(e Effect, format string, args ...any) {
	c.Why = append(c.Why, fmt.Sprintf(format, args...))
	for _, grave := range []Effect{EffectAfresh, EffectEnforced, EffectGone, EffectKeeps} {
		if c.Effect == grave || e == grave {
			c.Effect = grave
			return
		}
	}
}

// keys tells what gives the limit other keys.
func (p *place) keys(n *place, c *Change) {
	o, l := p.limit(), n.limit()
	switch {
	case o.KeyRule == l.KeyRule:
	case p.rule.Name != n.rule.Name:
		c.note(EffectAfresh, "the rule was named %s: other keys", p.rule.Name)
	case o.Name != l.Name:
		c.note(EffectAfresh, "the limit was named %s: other keys", o.Name)
	default: // a rule's only limit that refuses has the rule's name in its keys
		c.note(EffectAfresh, "its keys were of %s and are of %s: a rule's limits have their names in their keys where several refuse", o.KeyRule, l.KeyRule)
	}
	before, _ := o.Strategy.Lua()
	after, _ := l.Strategy.Lua()
	if before != after {
		c.note(EffectAfresh, "algorithm %s, was %s: other keys; the old ones wait for their TTL, so a roll-back finds them", l.Algorithm, o.Algorithm)
	}
	if subjectSpelled(o) != subjectSpelled(l) {
		c.note(EffectAfresh, "subject %s, was %s: other keys", l.SubjectName, o.SubjectName)
	}
}

// numbers tells what becomes of usage under another count, period or burst of the same algorithm.
func numbers(o, l *Limit, c *Change) {
	was, is := o.Strategy.Limit(), l.Strategy.Limit()
	switch {
	case was == is:
		return
	case was.Period != is.Period && !HasBurst(l.Algorithm):
		c.note(EffectAfresh, "period %s, was %s: a window of another length is not counted", period(is), period(was))
	case was.Period != is.Period:
		c.note(EffectKeeps, "period %s, was %s: what is spent comes back at the new rate", period(is), period(was))
	}
	if was.Count != is.Count {
		c.note(EffectKeeps, "count %d, was %d: from the next request", is.Count, was.Count)
	}
	if was.Burst != is.Burst && HasBurst(l.Algorithm) {
		c.note(EffectKeeps, "burst %d, was %d: from the next request", is.Burst, was.Burst)
	}
}

// period is a limit's period as a rule file has it.
func period(l algorithm.Limit) string {
	text := algorithm.Limit{Count: 1, Period: l.Period}.String()
	return text[len("1/"):]
}

func limitText(l *Limit) string {
	return fmt.Sprintf("%s %v per %s", l.Algorithm, l.Strategy.Limit(), l.SubjectName)
}

// overrides counts what differs: a subject may be a secret, and is not named.
func (p *place) overrides(n *place, c *Change) {
	before, after := p.limitConfig().Overrides, n.limitConfig().Overrides
	left := map[OverrideConfig]int{}
	same := func(o OverrideConfig) OverrideConfig { o.Until = o.Until.UTC(); return o } // one instant in one spelling
	for _, o := range before {
		left[same(o)]++
	}
	added := 0
	for _, o := range after {
		if left[same(o)] > 0 {
			left[same(o)]--
		} else {
			added++
		}
	}
	removed := 0
	for _, n := range left {
		removed += n
	}
	if added+removed > 0 {
		c.note(EffectKeeps, "overrides: %d added, %d removed, of %d before", added, removed, len(before))
	}
}
