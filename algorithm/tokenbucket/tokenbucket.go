// Package tokenbucket allows a steady rate with bursts: a bucket of Burst tokens that is full at first sight, gives a
// token for each unit that passes, and regains Count tokens each Period up to Burst.
//
// Over any time t it admits at most Burst + Count·t/Period. Choose it for most endpoints: it forgives a burst after
// a quiet time and needs no waiting.
package tokenbucket

import (
	_ "embed"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/internal/level"
)

//go:embed tokenbucket.lua
var source string

// script is shared by all buckets: same strategy means same *Script.
var script = &algorithm.Script{Name: "token_bucket", Source: level.Source + source, Words: []string{"spent", "ts", "unit"}}

// Bucket is a token bucket. It is immutable and safe for concurrent use.
type Bucket struct {
	level  level.Level
	params []int64
	limit  algorithm.Limit
}

// New returns a bucket of l.Burst tokens that regains l.Count tokens each l.Period.
//
// Its arithmetic is exact on ticks of 1 µs, or 1 ms or 1 s where a large limit needs it. A limit that does not fit
// even so is an error that names the field and the bound: a Count or Burst below 1, a Period that is no whole number
// of µs up to 2^50, a Burst too large for exact arithmetic, or a time to regain two Bursts above 2^50 µs.
func New(l algorithm.Limit) (*Bucket, error) {
	v, err := level.New("tokenbucket", l)
	if err != nil {
		return nil, err
	}
	return &Bucket{level: v, params: v.Params(), limit: l}, nil
}

// Take allows n tokens if as many are left. With spent(t) = max(0, spent - Count·(t-ts)/Period), they are left if
// spent(now) + n <= Burst; then spent = spent(now) + n and ts = now. It is the bucket of
// https://en.wikipedia.org/wiki/Token_bucket, counted from full. A state written under a larger limit is clamped to
// Burst for the verdict alone.
func (b *Bucket) Take(s algorithm.State, now, n int64) (next algorithm.State, d algorithm.Decision) {
	d = b.TakeIn(&s, now, n)
	return s, d
}

// TakeIn is Take on a state that stays where it is: for stores in memory, to which copies are a large part of the time.
func (b *Bucket) TakeIn(s *algorithm.State, now, n int64) (d algorithm.Decision) {
	if _, ok := b.level.TakeUsual(s, &d, now, n); !ok {
		b.level.Take(s, &d, now, n)
	}
	return d
}

// Adjust spends n tokens more, up to one Burst of debt, or gives n back, whenever they were charged.
func (b *Bucket) Adjust(s algorithm.State, now, n, at int64) algorithm.State {
	return b.level.Adjust(s, now, n)
}

// Lua returns the twin. Its parameters: units per token, units regained per tick, Burst, and µs per tick where that is not 1.
func (b *Bucket) Lua() (*algorithm.Script, []int64) { return script, b.params }

// Limit returns the limit as given to New.
func (b *Bucket) Limit() algorithm.Limit { return b.limit }
