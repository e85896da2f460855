package redis

import (
	"fmt"
	"strconv"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// A reply carries the time of the decision, what was charged, and the words as they were before it. Go runs the same
// step on them: so the reply is small, and a script that differs from its twin is found out at once.

// reader takes a reply's elements in order. The first fault stays.
type reader struct {
	items []any
	err   error
}

func newReader(reply any) *reader {
	items, ok := reply.([]any)
	if !ok {
		return &reader{err: fmt.Errorf("%w: reply is a %T, want a list", sluice.ErrState, reply)}
	}
	return &reader{items: items}
}

// next returns an element as it came: a string, or nil for a missing word.
func (r *reader) next() any {
	if r.err == nil && len(r.items) == 0 {
		r.err = fmt.Errorf("%w: reply is too short", sluice.ErrState)
	}
	if r.err != nil {
		return nil
	}
	item := r.items[0]
	r.items = r.items[1:]
	return item
}

// whole returns an element that is a whole number within ±2^52.
func (r *reader) whole(name string) int64 {
	var n int64
	var err error
	switch item := r.next().(type) {
	case string:
		n, err = strconv.ParseInt(item, 10, 64)
	case int64:
		n = item
	default:
		err = fmt.Errorf("a %T", item)
	}
	if r.err == nil && (err != nil || n > algorithm.Bound || n < -algorithm.Bound) {
		r.err = fmt.Errorf("%w: reply's %s is no whole number within ±2^52", sluice.ErrState, name)
	}
	return n
}

// now returns the time of the decision, µs.
func (r *reader) now() int64 {
	seconds, micros := r.whole("seconds"), r.whole("µs")
	if r.err == nil && (seconds < 0 || seconds > algorithm.Bound/1_000_000 || micros < 0) {
		r.err = fmt.Errorf("%w: reply's time is %d s and %d µs", sluice.ErrState, seconds, micros)
	}
	return min(seconds*1_000_000+micros, algorithm.Bound-1)
}

// ask returns what one ask charged and the state that it found. Words are all there or none is.
func (r *reader) ask(key string, script *algorithm.Script) (charged int64, s algorithm.State) {
	charged = r.whole("charged")
	if r.err == nil && charged < 0 {
		r.err = fmt.Errorf("%w: key %q: words %s are not all whole numbers within ±2^52", sluice.ErrState, key, r.words(script))
		return charged, s
	}
	missing := 0
	for i, name := range script.Words {
		if r.err == nil && len(r.items) > 0 && r.items[0] == nil {
			r.items = r.items[1:]
			missing++
			continue
		}
		s[i] = r.whole(name)
	}
	if r.err == nil && missing != 0 && missing != len(s) {
		r.err = fmt.Errorf("%w: key %q: %d of its words are missing", sluice.ErrState, key, missing)
	}
	return charged, s
}

// end tells of elements that nobody asked for, and of the first fault.
func (r *reader) end() error {
	if r.err == nil && len(r.items) > 0 {
		r.err = fmt.Errorf("%w: reply is %d elements too long", sluice.ErrState, len(r.items))
	}
	return r.err
}

// words writes the words of a state that is unusable.
func (r *reader) words(script *algorithm.Script) string {
	text := ""
	for i, name := range script.Words {
		if i < len(r.items) {
			text += fmt.Sprintf(" %s=%.40q", name, r.items[i])
		}
	}
	return text
}

// readOne makes the Decision of one plain charge.
func (s *Store) readOne(a *sluice.Ask, script *algorithm.Script, reply any) (sluice.Decision, error) {
	r := newReader(reply)
	now := r.now()
	charged, state := r.ask(a.Key.Rule, script)
	if err := r.end(); err != nil {
		return sluice.Decision{}, err
	}
	_, d := a.Strategy.Take(state, now, a.N)
	if d.Charged != charged {
		return sluice.Decision{}, differs(a, charged, d.Charged)
	}
	return d, nil
}

// readAny makes the Verdict of any asks.
func readAny(asks []sluice.Ask, keys []string, reply any) (sluice.Verdict, error) {
	r := newReader(reply)
	now, refused := r.now(), r.whole("refused")
	kept := make([]*algorithm.State, len(asks))
	charged := make([]int64, len(asks))
	open := make(map[string]*algorithm.State, len(asks))
	for i, a := range asks {
		var s algorithm.State
		if refused == 0 || int64(i) < refused {
			script, _ := a.Strategy.Lua()
			charged[i], s = r.ask(a.Key.Rule, script)
		}
		if open[keys[i]] == nil {
			open[keys[i]] = &s
		}
		kept[i] = open[keys[i]]
	}
	if err := r.end(); err != nil {
		return sluice.Verdict{}, err
	}
	v := sluice.DecideAll(asks, kept, now, sluice.Shared)
	if int64(v.Refused+1) != refused {
		return sluice.Verdict{}, fmt.Errorf("%w: Redis refused ask %d, Go %d of %d", sluice.ErrState, refused-1, v.Refused, len(asks))
	}
	for i := range asks {
		if refused == 0 && v.Each[i].Charged != charged[i] {
			return sluice.Verdict{}, differs(&asks[i], charged[i], v.Each[i].Charged)
		}
	}
	return v, nil
}

// differs is the error of twins that disagree: a script of another version, or a fault.
func differs(a *sluice.Ask, lua, goes int64) error {
	return fmt.Errorf("%w: rule %q: Redis charged %d, Go %d of %d", sluice.ErrState, a.Key.Rule, lua, goes, a.N)
}
