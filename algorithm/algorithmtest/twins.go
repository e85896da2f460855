package algorithmtest

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm"
)

// Twins runs that many steps of [Histories] through the Go and the Lua half of an algorithm and fails at the first
// that they decide differently: in what is allowed, what remains, the words kept, or the time until those are zero.
func Twins(t *testing.T, steps int, build New) {
	t.Helper()
	c := comparison{twins: map[*algorithm.Script]*Twin{}}
	defer c.close()
	for i, s := range Histories(1, steps, build) {
		if s.Set != nil {
			c.state = *s.Set
		}
		c.step(t, i, s)
	}
	t.Logf("%d steps: %d allowed, %d denied, %d adjusted", steps, c.allowed, c.denied, c.adjusted)
	if steps >= 1000 && min(c.allowed, c.denied, c.adjusted) < steps/20 {
		t.Errorf("the histories are one-sided: they prove little")
	}
}

// FuzzTwins is [Twins] on histories that the fuzzer makes up. Seeds that it should start from are added with f.Add
// of one []byte, before.
func FuzzTwins(f *testing.F, build New) {
	f.Fuzz(func(t *testing.T, data []byte) {
		c := comparison{twins: map[*algorithm.Script]*Twin{}}
		defer c.close()
		src := &fed{data}
		w := newWalk(src, build, 3)
		if src.below(4) == 3 {
			w.state = forge(src, w.now)
		}
		c.state = w.state
		for i := 0; i < 64 && !src.empty(); i++ {
			s := w.next()
			c.step(t, i, s)
			w.run(s)
		}
	})
}

// comparison runs steps through both halves, on one key.
type comparison struct {
	twins                     map[*algorithm.Script]*Twin
	state                     algorithm.State
	allowed, denied, adjusted int
}

func (c *comparison) close() {
	for _, t := range c.twins {
		t.Close()
	}
}

func (c *comparison) step(t testing.TB, i int, s Step) {
	t.Helper()
	before := c.state
	r, err := c.lua(s)
	if err != nil {
		t.Fatalf("step %d: Lua: %v\n%v, state %v\n%+v", i, err, s.Strategy.Limit(), before, s)
	}
	var want Reply
	var next algorithm.State
	if s.Adjust {
		next = s.Strategy.Adjust(before, s.Now, s.N, s.At)
		_, d := s.Strategy.Take(next, s.Now, 0)
		want.Reset = micros(d.ResetAfter)
		c.adjusted++
	} else {
		var d algorithm.Decision
		next, d = s.Strategy.Take(before, s.Now, s.N)
		want.Allowed, want.Remaining, want.Reset = d.Allowed, d.Remaining, micros(d.ResetAfter)
		if d.Allowed {
			c.allowed++
		} else {
			c.denied++
		}
		if (r.Kept != nil) != (d.Charged > 0) {
			t.Fatalf("step %d: Lua keeps a state %v, Go charged %d\n%v, state %v\n%+v", i, r.Kept, d.Charged, s.Strategy.Limit(), before, s)
		}
	}
	kept := before
	if r.Kept != nil {
		kept = *r.Kept
	} else {
		want.Reset, r.Reset = 0, 0
	}
	r.Kept = nil
	if r != want || kept != next {
		t.Fatalf("step %d: Go and Lua differ\nGo:  %+v, keeps %v\nLua: %+v, keeps %v\n%v, state %v\n%+v",
			i, want, next, r, kept, s.Strategy.Limit(), before, s)
	}
	c.state = next
}

func (c *comparison) lua(s Step) (Reply, error) {
	script, p := s.Strategy.Lua()
	twin := c.twins[script]
	if twin == nil {
		var err error
		if twin, err = NewTwin(script); err != nil {
			return Reply{}, err
		}
		c.twins[script] = twin
	}
	if s.Adjust {
		return twin.Adjust(c.state, s.Now, s.N, s.At, p)
	}
	return twin.Take(c.state, s.Now, s.N, p)
}
