package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// Options are the choices of a run.
type Options struct {
	Duration time.Duration   // arrivals are from 0 to this, the end included
	Start    int64           // µs since the Unix epoch; 0: the first multiple of the limit's Period in 2023-11-15
	Seed     uint64          // of arrivals and of clients
	Clients  Clients         // what those do who are denied
	OneKey   bool            // all subjects share one limit; else each has its own
	Windows  []time.Duration // lengths of which the largest counts are wanted; nil: the limit's Period
	Observe  func(*Event)    // is called for each decision; the Event is valid until it returns. nil: nobody
}

// Event is one decision.
type Event struct {
	Request
	Try           int   // 1 for a request's first
	First         int64 // when the request came first, µs since the start
	Now           int64 // At, in µs since the Unix epoch
	Before, After algorithm.State
	Decision      algorithm.Decision
}

// Acts is when an allowed request acts: At and the Delay, µs since the start.
func (e *Event) Acts() int64 { return e.At + e.Decision.Delay.Microseconds() }

// epoch is a midnight of 2023, in µs.
const epoch = 1_700_006_400_000_000

// mostRun is the longest run.
const mostRun = 366 * 24 * time.Hour

// Check says what of o can't be run.
func (o Options) Check() error {
	switch {
	case o.Duration < 0 || o.Duration > mostRun:
		return fmt.Errorf("sim: Duration %v: want 0s to %v", o.Duration, mostRun)
	case o.Start < 0 || o.Start > algorithm.Bound/2:
		return fmt.Errorf("sim: Start %d: want 0 to 2^51 µs", o.Start)
	case len(o.Windows) > 16:
		return fmt.Errorf("sim: Windows: %d: want at most 16", len(o.Windows))
	}
	for _, w := range o.Windows {
		if err := checkTime("Windows", w); err != nil {
			return err
		}
	}
	return o.Clients.Check()
}

// Sim is a run that is made one decision at a time.
type Sim struct {
	limiter Limiter
	options Options
	stream  Stream  // nil: greedy
	next    Request // of the stream
	more    bool    // whether there is one
	waiting waiters
	random  *rand.Rand // of the clients
	tally   tally
	event   Event
}

// Begin returns a run that has decided nothing yet. The limiter is the run's own from then on.
func Begin(l Limiter, a Arrivals, o Options) (*Sim, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Clients = o.Clients.Filled()
	if period := l.Limit().Period.Microseconds(); o.Start == 0 {
		o.Start = (epoch + period - 1) / period * period
	}
	if o.Windows == nil {
		o.Windows = []time.Duration{l.Limit().Period}
	}
	s := &Sim{limiter: l, options: o, stream: a.Start(o.Seed), random: rand.New(rand.NewPCG(o.Seed, 4)), tally: newTally(o.Windows)}
	if s.stream == nil {
		s.next, s.more = Request{N: 1}, true
		return s, nil
	}
	s.advance()
	return s, nil
}

// advance gets the next request of the stream.
func (s *Sim) advance() {
	s.next, s.more = s.stream()
	if s.next.At > s.options.Duration.Microseconds() {
		s.more = false
	}
}

// Next makes the next decision; false when the run has ended. The Event is valid until the next call.
func (s *Sim) Next() (*Event, bool) {
	e := &s.event
	if s.stream == nil {
		return s.greedy()
	}
	switch waits := len(s.waiting.heap) > 0; {
	case waits && (!s.more || s.waiting.heap[0].At <= s.next.At):
		w := s.waiting.pop()
		e.Request, e.First, e.Try = w.Request, w.first, w.try
	case s.more:
		e.Request, e.First, e.Try = s.next, s.next.At, 1
		s.advance()
	default:
		return nil, false
	}
	e.Now = s.options.Start + e.At
	s.decide()
	comesBack := false
	if !e.Decision.Allowed {
		wait, again := s.options.Clients.wait(e.Try, &e.Decision, s.random)
		// Those who would come back after the end have not been served by then.
		if again && e.At+wait <= s.options.Duration.Microseconds() {
			r := e.Request
			r.At += wait
			comesBack = s.waiting.push(waiter{Request: r, first: e.First, try: e.Try + 1})
		}
	}
	s.count(comesBack)
	return e, true
}

func (s *Sim) key() int {
	if s.options.OneKey {
		return 0
	}
	return s.event.Subject
}

func (s *Sim) decide() {
	e := &s.event
	e.Before, e.After, e.Decision = s.limiter.Take(s.key(), e.Now, e.N)
}

func (s *Sim) count(comesBack bool) {
	s.tally.add(&s.event, s.key(), comesBack, s.limiter)
	if s.options.Observe != nil {
		s.options.Observe(&s.event)
	}
}

// greedy makes the next decision of [Greedy]'s client.
func (s *Sim) greedy() (*Event, bool) {
	if !s.more {
		return nil, false
	}
	e := &s.event
	e.Request, e.Try = s.next, e.Try+1
	if e.Try == 1 {
		e.First = e.At
	}
	e.Now = s.options.Start + e.At
	s.decide()
	if d := &e.Decision; !d.Allowed {
		s.next.At += max(1, d.RetryAfter.Microseconds())
		s.more = d.RetryAfter != algorithm.Never && s.next.At <= s.options.Duration.Microseconds()
	}
	s.count(s.more)
	if e.Decision.Allowed {
		e.Try = 0
	}
	return e, true
}

// Figures are what the run has come to so far.
func (s *Sim) Figures() Figures { return s.tally.figures(s.limiter, s.options) }

// Run makes a whole run.
func Run(l Limiter, a Arrivals, o Options) (Figures, error) {
	s, err := Begin(l, a, o)
	if err != nil {
		return Figures{}, err
	}
	for {
		if _, more := s.Next(); !more {
			return s.Figures(), nil
		}
	}
}
