package engine

import "github.com/sluice-go/sluice/algorithm"

// Explanation is a decision's arithmetic in numbers, in units and µs. Which formula: Kind.
type Explanation struct {
	Kind string // bucket, queue, fixed, sliding; or fallback
	// bucket and queue: Held units at the time of the state, Ago µs before; Freed have come back or left since; Now are
	// held at the decision. fixed: Now were counted in the running window. sliding: Previous and Current were counted,
	// Weight of the last window still counts, and Now is their sum, rounded up. fallback: what the bucket held, as Now.
	Held, Freed, Now, Weight float64
	Previous, Current        int64
	Ago                      int64 // µs
	Left                     int64 // µs: windows: until the running one ends
	Most                     int64 // units that fit
}

// Words are the names of the state's integers.
func (v Lane) Words() []string {
	script, _ := v.strategy.Lua()
	return script.Words
}

// Explain works out again what Take did.
func (v Lane) Explain(r Record) Explanation {
	now := Origin + r.At
	_, before := v.strategy.Take(r.Before, now, 0)
	_, params := v.strategy.Lua()
	period := micros(v.Limit.Period)
	switch {
	case r.Away:
		d := r.Decision
		return Explanation{Kind: "fallback", Now: float64(d.Limit - d.Remaining - d.Charged), Most: d.Limit}
	case v.Algorithm == "fixed_window":
		return Explanation{Kind: "fixed", Now: float64(before.Limit - before.Remaining), Most: v.Limit.Count, Left: period - now%period}
	case v.Algorithm == "sliding_window":
		e := Explanation{Kind: "sliding", Now: float64(before.Limit - before.Remaining), Most: v.Limit.Count, Left: period - now%period}
		switch start := now - now%period; r.Before[2] {
		case start:
			e.Previous, e.Current = r.Before[0], r.Before[1]
		case start - period:
			e.Previous = r.Before[1]
		}
		e.Weight = float64(e.Left) / float64(period)
		return e
	}
	return explainLevel(v.Algorithm, r.Before, now, params)
}

// explainLevel explains a bucket or a queue, whose parameters are units per token, units regained per tick, burst, and
// µs per tick.
func explainLevel(name string, s algorithm.State, now int64, p []int64) Explanation {
	e := Explanation{Kind: "bucket", Most: p[2]}
	if name == "leaky_bucket" {
		e.Kind = "queue"
	}
	tick := int64(1)
	if len(p) > 3 {
		tick = p[3]
	}
	if s[2] > 0 {
		e.Ago = max(0, now-s[1])
		e.Held = min(float64(max(s[0], -s[0]))/float64(s[2]), float64(e.Most))
		e.Freed = min(float64(e.Ago/tick)*float64(p[1])/float64(p[0]), e.Held)
	}
	e.Now = e.Held - e.Freed
	return e
}
