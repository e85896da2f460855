package policy

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
)

// override is a compiled OverrideConfig.
type override struct {
	strategy sluice.Strategy
	until    time.Time // zero: never ends
}

// StrategyFor returns the strategy that holds at now for a subject, given as Key.Subject has it: that of an override
// which has not ended, else the limit's own. The key is the same under all of them, so usage is kept.
func (l *Limit) StrategyFor(subject string, now time.Time) sluice.Strategy {
	for _, o := range l.overrides[subject] {
		if o.until.IsZero() || now.Before(o.until) {
			return o.strategy
		}
	}
	return l.Strategy
}

// SubjectKey returns the Key.Subject of requests whose subject is text: for a header, cookie or query the hash of that
// value, for ip the address or the network that it counts with. The error never holds the text, which may be a secret.
func (l *Limit) SubjectKey(text string) (string, error) {
	if l.key == nil {
		return "", fmt.Errorf("policy: limit %s: made without New", l.Name)
	}
	key, problem := l.key(text)
	if problem != "" {
		return "", fmt.Errorf("policy: subject of limit %s: %s", l.Name, problem)
	}
	return key, nil
}

// AddressKey returns the Key.Subject of requests that are counted by their address, because that is the limit's subject
// or because they lack it.
func (r *Rules) AddressKey(address string) (string, error) {
	key, problem := addressKey(address, r.config.IPv6Prefix)
	if problem != "" {
		return "", fmt.Errorf("policy: %q: %s", address, problem)
	}
	return key, nil
}

// overrides compiles the overrides of a limit, whose algorithm is e if that is known.
func (k *compiler) overrides(path string, l *Limit, c *LimitConfig, e entry, known bool) {
	if len(c.Overrides) == 0 {
		return
	}
	bySubject, byKey := map[string]int{}, map[string]int{}
	made := map[string][]override{}
	for i := range c.Overrides {
		o, at := &c.Overrides[i], fmt.Sprintf("%s[%d]", path, i)
		var st sluice.Strategy
		if known {
			st = k.strategy(at, e, o.Limit, c.MaxDelay)
		}
		key, seen := o.SubjectKey, byKey
		switch {
		case o.Subject != "" && o.SubjectKey != "":
			k.fault(at+".subject", "set beside a subject key: want one of them")
			continue
		case o.Subject == "" && o.SubjectKey == "":
			k.fault(at+".subject", "missing: want the subject that the limit is for")
			continue
		case o.Subject != "":
			var ok bool
			if key, ok = k.overridden(at+".subject", l, o.Subject); !ok {
				continue
			}
			seen = bySubject
		}
		if other, twice := seen[key]; twice {
			k.fault(at+".subject", "is also that of overrides[%d]: want one override for a subject", other)
			continue
		}
		seen[key] = i
		if st == nil {
			continue
		}
		compiled := override{strategy: st, until: o.Until}
		if o.SubjectKey != "" { // before one by Subject, which holds again when this ends
			made[key] = append([]override{compiled}, made[key]...)
		} else {
			made[key] = append(made[key], compiled)
		}
	}
	l.overrides = made
}

// overridden returns the key of an override's subject; false where there is none, which is reported if it is a fault.
func (k *compiler) overridden(path string, l *Limit, text string) (string, bool) {
	value, ok := k.reveal(path, text)
	if !ok || l.key == nil {
		return "", false
	}
	key, problem := l.key(value)
	if problem != "" {
		k.fault(path, "%s", problem)
		return "", false
	}
	return key, true
}
