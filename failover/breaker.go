// Package failover limits through an outage. A [Breaker] watches a shared store, and [Breaker.Guard] makes of that
// store and a fallback one store, which decides as the first while it answers and as the second while it does not:
// without an error, within the first's own timeout, and under a bound that both keep together.
//
// The fallback is any store: store/local's Buckets with [Breaker.Share], which go on limiting; [AllowAll], which lets
// everything pass; or [DenyAll], which lets nothing pass.
package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sluice-go/sluice"
)

// Options are the choices of a Breaker. The zero Options are good for most programs with one process; with more, set
// Heartbeat or Instances, so that a fallback knows its share.
type Options struct {
	TripAfter int           // consecutive failures that open the breaker, however far apart; 0: 5
	TripShare float64       // part of at least 20 calls in Window that fail, which opens it too; 0: 0.5; above 1: never
	Window    time.Duration // what TripShare looks back on, in ten steps; 0: 10s
	OpenFor   time.Duration // from opening to the first probe; 0: 1s
	Probes    int           // calls that probe at once, all of which must succeed to close the breaker; 0: 1

	// Instances is how many processes share each limit. 0: the most that Heartbeat saw in the last minute in which it
	// got answers, and 1 until its first.
	Instances int
	// Heartbeat tells the shared store that this process lives, and returns how many do. It is called each second by
	// one goroutine, with a deadline, until Close. Nil: none.
	Heartbeat func(context.Context) (int, error)

	// OnChange is told of each change of state, in order, outside every lock, on the goroutine of a call that caused
	// it or came by. It may call the Breaker.
	OnChange func(from, to State)
}

const (
	defaultTripAfter = 5
	defaultTripShare = 0.5
	defaultWindow    = 10 * time.Second
	defaultOpenFor   = time.Second

	leastCalls  = 20 // below which TripShare says nothing
	windowSteps = 10
)

// Breaker counts how the calls to one shared store end, and keeps them away from it while it fails. There is one for a
// Redis, not one for a rule. It is safe for concurrent use.
//
// A half-open breaker waits for a call that probes: for a process that has none, see Probe.
//
// An unanswered or refused call is a failure; a cancelled one, one whose state is unusable (ErrState), and one whose
// caller gave it less than 10 ms, count neither way.
type Breaker struct {
	options Options
	breaker *gobreaker.CircuitBreaker[struct{}]
	start   time.Time
	changes changes
	fleet   fleet
	waiting waiting

	probeRule  string // Key.Rule of Probe's asks: its own, so that no other process's charges deny them
	unanswered atomic.Pointer[probed]

	state     atomic.Uint32 // a State
	openUntil atomic.Int64  // ns since start: until when Open needs no second look
	failures  int           // consecutive; guarded by breaker's lock, under which its callbacks run

	ctx     context.Context // ends at Close
	stop    context.CancelFunc
	closing sync.Mutex // closed, and running.Add
	closed  bool
	running sync.WaitGroup
}

// New returns a closed breaker. Where o.Heartbeat is set, it starts the goroutine that Close ends.
func New(o Options) *Breaker {
	if o.TripAfter <= 0 {
		o.TripAfter = defaultTripAfter
	}
	if !(o.TripShare > 0) {
		o.TripShare = defaultTripShare
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.OpenFor <= 0 {
		o.OpenFor = defaultOpenFor
	}
	if o.Probes <= 0 {
		o.Probes = 1
	}
	b := &Breaker{
		options: o, start: time.Now(), changes: changes{tell: o.OnChange},
		probeRule: "probe-" + strconv.FormatUint(rand.Uint64(), 36),
	}
	b.ctx, b.stop = context.WithCancel(context.Background())
	b.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:   uint32(min(o.Probes, 1<<16)),
		Interval:      o.Window,
		BucketPeriod:  max(o.Window/windowSteps, 1),
		Timeout:       o.OpenFor,
		IsExcluded:    neutral,
		IsSuccessful:  b.counts,
		ReadyToTrip:   b.trips,
		OnStateChange: b.changed,
	})
	if o.Heartbeat != nil {
		b.run(b.beat)
	}
	return b
}

// State returns what the breaker does with calls now.
func (b *Breaker) State() State {
	s := stateOf(b.breaker.State())
	b.changes.deliver()
	return s
}

// Share is the part of each limit that is this process's own while the shared store is away: one by the number of
// instances. It is cheap, and made to be [local.BucketsOptions].Share.
//
// [local.BucketsOptions]: https://pkg.go.dev/github.com/sluice-go/sluice/store/local#BucketsOptions
func (b *Breaker) Share() float64 {
	if n := b.options.Instances; n > 0 {
		return 1 / float64(n)
	}
	return 1 / float64(max(1, b.fleet.most.Load()))
}

// closeTime is how long Close waits for what it has told to end.
const closeTime = 5 * time.Second

// Close ends the breaker's goroutines and waits for them. It may be called twice. Guards go on deciding, under the
// last Share; Settles that still wait for their store are dropped, so that their estimates stay charged.
func (b *Breaker) Close() error {
	b.closing.Lock()
	b.closed = true
	b.closing.Unlock()
	b.stop()
	done := make(chan struct{})
	go func() {
		b.running.Wait()
		close(done)
	}()
	t := time.NewTimer(closeTime)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return fmt.Errorf("failover: close: Heartbeat or a store has not returned %v after its context ended", closeTime)
	}
}

// run runs f on a goroutine that Close waits for; false once closed.
func (b *Breaker) run(f func()) bool {
	b.closing.Lock()
	defer b.closing.Unlock()
	if b.closed {
		return false
	}
	b.running.Go(f)
	return true
}

// now is the time since the breaker was made, ns.
func (b *Breaker) now() int64 { return int64(time.Since(b.start)) }

// shut tells whether the breaker is open and needs no second look, at a time.
func (b *Breaker) shut(now int64) bool {
	return State(b.state.Load()) == Open && now <= b.openUntil.Load()
}

// errOpen is the answer of a Guard without a fallback while the primary is not asked.
var errOpen = fmt.Errorf("%w: failover: the breaker is open", sluice.ErrUnavailable)

// The outcomes of a call, as gobreaker is told them. Any other error, such as that of a panic, is neutral.
var (
	errFailed     = errors.New("failed")
	errNeutral    = errors.New("neither way")
	errRemembered = errors.New("remembered") // the primary has decided without asking Redis
)

func neutral(err error) bool { return err != nil && err != errFailed }

// counts tells whether an outcome is a success, and keeps the count of consecutive failures: gobreaker's own forgets
// those that its window has left behind, so that rare calls would never trip.
func (b *Breaker) counts(err error) bool {
	if err == nil {
		b.failures = 0
		return true
	}
	b.failures++
	return false
}

func (b *Breaker) trips(c gobreaker.Counts) bool {
	if b.failures >= b.options.TripAfter {
		return true
	}
	calls := c.TotalSuccesses + c.TotalFailures
	return calls >= leastCalls && float64(c.TotalFailures) >= b.options.TripShare*float64(calls)
}

func (b *Breaker) changed(_ string, from, to gobreaker.State) {
	b.failures = 0
	if to == gobreaker.StateOpen {
		b.openUntil.Store(b.now() + int64(b.options.OpenFor))
	}
	b.state.Store(uint32(stateOf(to)))
	b.changes.add(stateOf(from), stateOf(to))
}
