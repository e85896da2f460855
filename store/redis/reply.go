package redis

import (
	"fmt"
	"strings"

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
	n, ok := whole(r.next())
	if r.err == nil && !ok {
		r.err = fmt.Errorf("%w: reply's %s is no whole number within ±2^52", sluice.ErrState, name)
	}
	return n
}

// whole reads a number as the scripts do: digits, maybe after a minus sign, within ±2^52.
func whole(item any) (n int64, ok bool) {
	text, ok := item.(string)
	if !ok {
		n, ok = item.(int64)
		return n, ok && n <= algorithm.Bound && n >= -algorithm.Bound
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i] - '0'
		if c > 9 {
			return 0, false
		}
		if n = n*10 + int64(c); n > algorithm.Bound {
			return 0, false
		}
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, true
}

// now returns the time of the decision, µs.
func (r *reader) now() int64 {
	seconds, micros := r.whole("seconds"), r.whole("µs")
	if r.err == nil && (seconds < 0 || seconds > algorithm.Bound/1_000_000 || micros < 0) {
		r.err = fmt.Errorf("%w: reply's time is %d s and %d µs", sluice.ErrState, seconds, micros)
	}
	return min(seconds*1_000_000+micros, algorithm.Bound-1)
}

// ask returns what one ask charged and the state that it found.
func (r *reader) ask(rule string, script *algorithm.Script) (charged int64, s algorithm.State) {
	charged = r.whole("charged")
	s, err := r.words(rule, script)
	if r.err == nil && charged < 0 && err == nil {
		err = fmt.Errorf("%w: rule %q: Redis takes its words for unusable", sluice.ErrState, rule)
	}
	if r.err == nil {
		r.err = err
	}
	return charged, s
}

// words returns a state as it was found. Its words are whole numbers, all there or none; the error, if not, is one of
// this state alone.
func (r *reader) words(rule string, script *algorithm.Script) (s algorithm.State, err error) {
	var found [len(s)]any
	missing, unusable := 0, false
	for i := range found {
		if found[i] = r.next(); found[i] == nil {
			missing++
			continue
		}
		n, ok := whole(found[i])
		s[i], unusable = n, unusable || !ok
	}
	if r.err != nil {
		return s, nil
	}
	if unusable || missing != 0 && missing != len(s) {
		text := ""
		for i, name := range script.Words {
			text += " " + name + "="
			if found[i] != nil {
				text += fmt.Sprintf("%.40q", fmt.Sprint(found[i]))
			}
		}
		return s, fmt.Errorf("%w: rule %q: words%s: want none, or three whole numbers within ±2^52", sluice.ErrState, rule, text)
	}
	return s, nil
}

// end tells of elements that nobody asked for, and of the first fault.
func (r *reader) end() error {
	if r.err == nil && len(r.items) > 0 {
		r.err = fmt.Errorf("%w: reply is %d elements too long", sluice.ErrState, len(r.items))
	}
	return r.err
}

// readOne makes the Decision of one plain charge, and returns the state that it left.
func readOne(a *sluice.Ask, script *algorithm.Script, reply any) (sluice.Decision, algorithm.State, error) {
	r := newReader(reply)
	now := r.now()
	charged, state := r.ask(a.Key.Rule, script)
	if err := r.end(); err != nil {
		return sluice.Decision{}, state, err
	}
	left, d := a.Strategy.Take(state, now, a.N)
	if d.Charged != charged {
		return sluice.Decision{}, state, differs(a, charged, d.Charged)
	}
	return d, left, nil
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
