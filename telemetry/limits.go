package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

// MaxLimits is the most limits that are told apart. Those beyond it are [Other].
const MaxLimits = 1000

// Limit is what decisions are counted by.
type Limit struct {
	Rule      string
	Name      string // of the limit in its rule; "" where the rules are not known and Key.Rule has no slash
	Algorithm string // as rule files name it
	Shadow    bool   // it refuses nobody
}

// Other stands for all limits beyond MaxLimits that refuse; with Shadow set, for all that don't. No rule of a file can be
// named so.
func Other() Limit { return Limit{Rule: "(other)"} }

// Limits keeps a V for each limit, made when it is first asked about, and finds it without allocating. It is safe for
// concurrent use.
type Limits[V any] struct {
	rules func() *policy.Rules
	make  func(Limit) *V

	reading atomic.Pointer[reading[V]]

	adding sync.Mutex
	known  map[Limit]struct{} // all that make was ever called with
	other  others[V]
}

// others are what stands for all limits beyond MaxLimits.
type others[V any] struct{ refuse, shadow *V }

func (o *others[V]) of(shadow bool) *V {
	if shadow {
		return o.shadow
	}
	return o.refuse
}

// reading is what was found under one set of rules. It is immutable: an addition makes another.
type reading[V any] struct {
	rules   *policy.Rules
	shadows map[string]struct{} // Key.Rule of those limits of rules that refuse nobody
	byKey   map[limitKey]*V
	full    bool // keys that are not here are others'
}

type limitKey struct {
	rule   string // Key.Rule
	script *algorithm.Script
}

// NewLimits returns empty Limits. rules is called for each ask, from many goroutines, and must be cheap, as
// Service.Rules is; it says what limits are called and which are shadows. Nil, and while it returns nil: nothing is a
// shadow, and names are those in Key.Rule. When it returns other rules, every V is made anew.
func NewLimits[V any](rules func() *policy.Rules, make func(Limit) *V) *Limits[V] {
	if rules == nil {
		rules = func() *policy.Rules { return nil }
	}
	shadow := Other()
	shadow.Shadow = true
	return &Limits[V]{rules: rules, make: make, known: map[Limit]struct{}{}, other: others[V]{refuse: make(Other()), shadow: make(shadow)}}
}

// Of returns the V of the limit that an ask with this Key.Rule and Strategy is about.
func (l *Limits[V]) Of(rule string, st sluice.Strategy) *V {
	key := limitKey{rule: rule}
	if st != nil {
		key.script, _ = st.Lua()
	}
	if r := l.reading.Load(); r != nil && r.rules == l.rules() {
		if v := l.find(r, key); v != nil {
			return v
		}
	}
	return l.add(key)
}

// find returns what a reading has for a key; nil if the key is to be added.
func (l *Limits[V]) find(r *reading[V], key limitKey) *V {
	v := r.byKey[key]
	if v == nil && r.full {
		_, shadow := r.shadows[key.rule]
		return l.other.of(shadow)
	}
	return v
}

func (l *Limits[V]) add(key limitKey) *V {
	l.adding.Lock()
	defer l.adding.Unlock()
	old, next := l.reading.Load(), &reading[V]{rules: l.rules(), byKey: map[limitKey]*V{}}
	if old != nil && old.rules == next.rules {
		if v := l.find(old, key); v != nil { // another call was first
			return v
		}
		next.shadows = old.shadows
		for k, v := range old.byKey {
			next.byKey[k] = v
		}
	} else {
		next.shadows = shadowsOf(next.rules)
	}
	key.rule = strings.Clone(key.rule)
	v := l.valueOf(nameOf(key, next.rules))
	next.byKey[key] = v
	next.full = len(next.byKey) >= MaxLimits
	l.reading.Store(next)
	return v
}

// valueOf makes a limit's V, or returns that of Other where too many are known.
func (l *Limits[V]) valueOf(limit Limit) *V {
	named := limit
	named.Shadow = false // the same name
	if _, ok := l.known[named]; !ok {
		if len(l.known) >= MaxLimits {
			return l.other.of(limit.Shadow)
		}
		l.known[named] = struct{}{}
	}
	return l.make(limit)
}

// nameOf names a limit after the rules, or after Key.Rule, which package policy makes "rule" or "rule/limit".
func nameOf(key limitKey, rules *policy.Rules) Limit {
	rule, name, _ := strings.Cut(key.rule, "/")
	limit := Limit{Rule: rule, Name: name}
	if key.script != nil {
		limit.Algorithm = key.script.Name
	}
	if rules != nil {
		limit.find(key.rule, rules)
	}
	for _, text := range []*string{&limit.Rule, &limit.Name, &limit.Algorithm} {
		*text = Text(*text)
	}
	return limit
}

func (l *Limit) find(keyRule string, rules *policy.Rules) {
	for _, rule := range rules.All() {
		for i := range rule.Limits {
			if of := &rule.Limits[i]; of.KeyRule == keyRule {
				l.Rule, l.Name = rule.Name, of.Name
				l.Shadow = refusesNobody(of, rules)
				return
			}
		}
	}
}

func refusesNobody(l *policy.Limit, rules *policy.Rules) bool {
	return l.Shadow || rules.Mode() == policy.ModeShadow
}

// shadowsOf returns Key.Rule of the limits of rules that refuse nobody.
func shadowsOf(rules *policy.Rules) map[string]struct{} {
	if rules == nil {
		return nil
	}
	shadows := map[string]struct{}{}
	for _, rule := range rules.All() {
		for i := range rule.Limits {
			if l := &rule.Limits[i]; refusesNobody(l, rules) {
				shadows[l.KeyRule] = struct{}{}
			}
		}
	}
	return shadows
}

// Text returns a label's value without the bytes that are no UTF-8, which exporters refuse.
func Text(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }
