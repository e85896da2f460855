package sim

import (
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Figures are what a run came to. Requests are counted once, however often they were tried; units are costs.
type Figures struct {
	Requests int64 // that arrived
	Asked    int64 // tries, retries included
	Admitted int64 // requests that passed, at whichever try
	Denied   int64 // tries that did not
	Retries  int64 // tries beyond the first
	Lost     int64 // requests that never passed

	UnitsAsked, UnitsAdmitted int64 // of requests

	// Wait is from a request's first try until it acts: what it waited to come back, and what it was held.
	WaitMean, WaitP50, WaitP99, WaitMost time.Duration // of those admitted; quantiles are at most 1 % above

	Windows []Largest

	// Fairness is Jain's index of the units that each subject got: 1 if all got the same, 1/n if one of n got all.
	Fairness float64
	// Wasted is units that were asked for and not admitted although the limit's rate, over the whole run and for each key,
	// had room for them.
	Wasted float64

	Subjects   int     // that asked
	StateBytes int     // the largest state of a key
	Calls      float64 // Redis commands that a script would run for a decision, on average
}

// Largest is the largest counts of one key in any window of a length, in units.
type Largest struct {
	Length   time.Duration
	HalfOpen int64   // most admitted in any [t, t+Length)
	Closed   int64   // most admitted in any [t, t+Length]
	Acting   int64   // most that acted in any [t, t+Length): less than HalfOpen where requests are held
	ActingTo int64   // most that acted in any [t, t+Length]
	From     float64 // seconds since the start, when the closed one begins
	Most     int64   // what the limiter promises for HalfOpen; -1: nothing
}

// subject is what one who asks got.
type subject struct{ asked, admitted int64 } // units

// key is the windows that slide over what one key admitted.
type key struct {
	admitted []largest // half-open and closed for each length
	acting   []largest // likewise, from the first that is held on; nil before: what is admitted acts
	asked    int64     // units
	got      int64     // units
}

type tally struct {
	f        Figures
	lengths  []time.Duration
	wait     histogram
	subjects []subject
	keys     []key
	calls    int64
}

func newTally(lengths []time.Duration) tally { return tally{lengths: lengths} }

func (t *tally) add(e *Event, k int, comesBack bool, l Limiter) {
	for e.Subject >= len(t.subjects) {
		t.subjects = append(t.subjects, subject{})
	}
	for k >= len(t.keys) {
		t.keys = append(t.keys, key{})
	}
	s, own := &t.subjects[e.Subject], &t.keys[k]
	t.f.Asked++
	if e.Try == 1 {
		t.f.Requests++
		t.f.UnitsAsked += e.N
		s.asked += e.N
		own.asked += e.N
	} else {
		t.f.Retries++
	}
	t.calls += int64(l.Calls(e.Decision.Allowed, e.N))
	if !e.Decision.Allowed {
		t.f.Denied++
		if !comesBack {
			t.f.Lost++
		}
		return
	}
	n := e.Decision.Charged
	t.f.Admitted++
	t.f.UnitsAdmitted += n
	s.admitted += n
	own.got += n
	t.wait.add(e.Acts() - e.First)
	t.f.StateBytes = max(t.f.StateBytes, l.Size(k))
	own.slide(t.lengths, e)
}

// slide counts an admission in all windows.
func (k *key) slide(lengths []time.Duration, e *Event) {
	if k.admitted == nil {
		k.admitted = make([]largest, 2*len(lengths))
		for i, d := range lengths {
			k.admitted[2*i].reach, k.admitted[2*i+1].reach = d.Microseconds()-1, d.Microseconds()
		}
	}
	if k.acting == nil && e.Decision.Delay > 0 {
		for _, w := range k.admitted {
			k.acting = append(k.acting, w.clone())
		}
	}
	for i := range k.admitted {
		k.admitted[i].add(e.At, e.Decision.Charged)
	}
	for i := range k.acting {
		k.acting[i].add(e.Acts(), e.Decision.Charged)
	}
}

func (t *tally) figures(l Limiter, o Options) Figures {
	f := t.f
	f.WaitMean, f.WaitP50, f.WaitP99, f.WaitMost = t.wait.mean(), t.wait.quantile(0.5), t.wait.quantile(0.99), µs(t.wait.most)
	for i, d := range t.lengths {
		w := Largest{Length: d, Most: l.Most(d)}
		for _, k := range t.keys {
			if k.admitted == nil {
				continue
			}
			acting := k.acting
			if acting == nil {
				acting = k.admitted
			}
			w.HalfOpen = max(w.HalfOpen, k.admitted[2*i].most)
			if closed := k.admitted[2*i+1]; closed.most > w.Closed {
				w.Closed, w.From = closed.most, float64(closed.from)/1e6
			}
			w.Acting, w.ActingTo = max(w.Acting, acting[2*i].most), max(w.ActingTo, acting[2*i+1].most)
		}
		f.Windows = append(f.Windows, w)
	}
	var got []float64
	for _, s := range t.subjects {
		if s.asked > 0 {
			got = append(got, float64(s.admitted))
		}
	}
	f.Subjects, f.Fairness = len(got), Jain(got)
	for _, k := range t.keys {
		f.Wasted += max(0, min(float64(k.asked), capacity(l.Limit(), o.Duration))-float64(k.got))
	}
	if f.Asked > 0 {
		f.Calls = float64(t.calls) / float64(f.Asked)
	}
	return f
}

// capacity is the units that a limit's rate has room for in a time.
func capacity(l algorithm.Limit, d time.Duration) float64 {
	return float64(l.Count) * float64(d) / float64(l.Period)
}

// Jain is Jain's index of fairness, (Σx)²/(n·Σx²): 1 if all are the same, and of none.
func Jain(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(x)) * squares)
}
