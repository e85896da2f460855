package engine

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Record is one decision, with the state before and after.
type Record struct {
	At            int64 // µs
	Subject       int
	N             int64
	Before, After algorithm.State // of the store that Redis is; while it is away, as it was left
	Decision      algorithm.Decision
	Away          bool // Redis was away: a fallback decided
	Instance      int  // that asked
	Expired       bool // the key had expired, and its state with it
}

// lane is one of the limiters that stand side by side.
type lane struct {
	name      string // of an algorithm, or of what the view compares
	algorithm string
	outage    string // what decides while Redis is away
	shared    bool   // under local: each instance has its share
	ttl       int64  // µs: a fixed TTL; 0: the time to full, as the engine has it

	strategy algorithm.Strategy
	keys     []key // by subject
	fleet    *fleet
	figures  Figures
	admitted fullest
	acting   fullest
	leaving  []waiting // in order of time
	bins     bins
	last     Record
}

// key is what Redis holds for one subject.
type key struct {
	state   algorithm.State
	expires int64 // µs; 0: there is no key
}

// waiting is a request that was allowed and will act later.
type waiting struct {
	entry
	subject int
}

// newLanes returns what a view puts side by side.
func newLanes(s Setup) []*lane {
	var lanes []*lane
	switch s.View {
	case "outage":
		for _, name := range []string{"share", "whole", "allow", "deny"} {
			outage := name
			if name == "share" || name == "whole" {
				outage = "local"
			}
			lanes = append(lanes, &lane{name: name, algorithm: s.Algorithm, outage: outage, shared: name == "share"})
		}
	case "ttl":
		lanes = append(lanes,
			&lane{name: "time_to_full", algorithm: s.Algorithm},
			&lane{name: "fixed_60s", algorithm: s.Algorithm, ttl: 60 * second},
			&lane{name: "fixed_24h", algorithm: s.Algorithm, ttl: day * millisecond})
	default:
		for _, name := range Algorithms() {
			lanes = append(lanes, &lane{name: name, algorithm: name})
		}
	}
	for _, l := range lanes {
		l.bins.width = max(1, s.SpanMs()*millisecond/Bins)
		l.bins.cols[0].Level = float32(math.NaN())
	}
	return lanes
}

// fit gives the lane a setup's limit, window and outage. What was spent stays spent, as under an edited limit.
func (l *lane) fit(s Setup) error {
	st, err := Strategy(l.algorithm, s.Limit(l.algorithm))
	if err != nil {
		return err
	}
	l.strategy = st
	if s.View != "outage" {
		l.outage, l.shared = s.Outage, s.Share == 1
	}
	for len(l.keys) < int(s.Clients) {
		l.keys = append(l.keys, key{})
	}
	l.admitted.length, l.acting.length = s.window(), s.window()
	return nil
}

// take decides one request, at a lane whose clock stands at a.at.
func (l *lane) take(a arrival, instance int) {
	stored := l.keys[a.subject].state
	k := l.live(a.subject, a.at)
	r := Record{At: a.at, Subject: a.subject, N: a.n, Away: l.fleet != nil, Instance: instance, Expired: stored != k.state}
	r.Before, r.After = k.state, k.state
	if l.fleet != nil {
		r.Decision = l.fleet.take(l, a, instance)
	} else {
		r.After, r.Decision = l.strategy.Take(k.state, Origin+a.at, a.n)
		if r.Decision.Charged > 0 {
			l.keep(k, r.After, a.at, r.Decision.ResetAfter)
		}
	}
	l.last = r
	l.count(r)
}

// live is a subject's key, empty if it has expired.
func (l *lane) live(subject int, at int64) *key {
	k := &l.keys[subject]
	if k.expires <= at {
		*k = key{}
	}
	return k
}

// keep writes a state, as a charge does: with its TTL, rounded up to ms.
func (l *lane) keep(k *key, s algorithm.State, at int64, reset time.Duration) {
	ttl := l.ttl
	if ttl == 0 {
		ttl = (micros(reset) + millisecond - 1) / millisecond * millisecond
	}
	k.state, k.expires = s, at+max(ttl, millisecond)
}

// count adds a decision to the figures and to the running column.
func (l *lane) count(r Record) {
	f, d, c := &l.figures, r.Decision, l.bins.at()
	f.Asked++
	if r.Away {
		f.AwayAsked++
	}
	if !d.Allowed {
		f.Denied++
		c.Denied++
		return
	}
	f.Allowed++
	f.Units += r.N
	if r.Away {
		f.AwayAllowed++
	}
	if r.Subject == 0 {
		l.admitted.add(r.At, r.N)
		f.Largest, f.LargestEnd = l.admitted.most, l.admitted.end
	}
	if d.Delay == 0 {
		c.Allowed++
		l.act(entry{r.At, r.N}, r.Subject)
		return
	}
	f.Delayed++
	c.Delayed++
	f.DelaySum += micros(d.Delay)
	f.WorstDelay = max(f.WorstDelay, micros(d.Delay))
	l.wait(waiting{entry{r.At + micros(d.Delay), r.N}, r.Subject})
}

// act counts a request that begins to act now.
func (l *lane) act(e entry, subject int) {
	l.bins.at().Acting++
	if subject == 0 {
		l.acting.add(e.at, e.n)
		l.figures.LargestActing = l.acting.most
	}
}

// wait queues a departure in order of time.
func (l *lane) wait(q waiting) {
	i := len(l.leaving)
	for i > 0 && l.leaving[i-1].at > q.at {
		i--
	}
	l.leaving = slices.Insert(l.leaving, i, q)
}

// clock moves the lane to a time: columns close, and those whose Delay is over act.
func (l *lane) clock(to int64, up bool) {
	gone := 0
	for gone < len(l.leaving) && l.leaving[gone].at <= to {
		q := l.leaving[gone]
		l.bins.advance(q.at, !up, l.level)
		l.act(q.entry, q.subject)
		gone++
	}
	l.leaving = slices.Delete(l.leaving, 0, gone)
	l.bins.advance(to, !up, l.level)
}

// level is what the first client has spent, counted or waiting at a time, in units.
func (l *lane) level(at int64) float64 {
	if l.fleet != nil {
		return l.fleet.level(l, at)
	}
	_, d := l.strategy.Take(l.live(0, at).state, Origin+at, 0)
	return l.spent(d, 1)
}

// spent is the level of a decision about no unit. A bucket falls steadily, so the time to its reset says it in parts
// of a unit.
func (l *lane) spent(d algorithm.Decision, share float64) float64 {
	if limit := l.strategy.Limit(); !strings.HasSuffix(l.algorithm, "_window") {
		return d.ResetAfter.Seconds() * share * float64(limit.Count) / limit.Period.Seconds()
	}
	return float64(d.Limit - d.Remaining)
}

// held counts the keys that have not expired.
func (l *lane) held(at int64) (n int64) {
	for _, k := range l.keys {
		if k.expires > at {
			n++
		}
	}
	return n
}

// clone is a copy that goes on by itself. A lane in an outage has none: its local buckets cannot be copied.
func (l *lane) clone() *lane {
	c := *l
	c.keys = append([]key(nil), l.keys...)
	c.leaving = append([]waiting(nil), l.leaving...)
	c.admitted, c.acting = l.admitted.clone(), l.acting.clone()
	return &c
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }
