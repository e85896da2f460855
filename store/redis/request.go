package redis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// request is one call on its way through a lane: a plain charge, which can share its script call with others, or a
// script call of its own.
type request struct {
	// What is asked. The caller sets it, and leaves it alone until the request has ended.
	ctx    context.Context // its values go with a batch that it leads
	ask    sluice.Ask
	key    string // where the state of a plain charge is
	script *algorithm.Script
	params []int64
	hash   uint64   // of the subject
	mark   uint64   // of the known denials, taken before it leaves
	own    *ownCall // a script call of its own; nil for a plain charge

	next *request // after this one, on the same key

	// What comes back, once it has ended.
	decision sluice.Decision
	reply    any
	err      error // as the client gave it
	repeated bool  // its failure has been told to another caller

	// Set by the watch that ends it before its batch does, which may write the answer yet.
	late, lateRepeated bool

	// deadline is when its time is up, ns since the store was made; 0 once somebody has ended it: the batch that
	// brings its answer, the lane whose watch finds it late, or the caller who goes. Only the first does.
	deadline atomic.Int64
	ended    chan struct{} // gets one element from the lane
}

// ownCall is a script call that no other asks join.
type ownCall struct {
	script *composed
	keys   []string
	args   []any // after the keys
}

var requests = sync.Pool{New: func() any { return &request{ended: make(chan struct{}, 1)} }}

// newRequest returns a clean request. One whose caller left early is not given back, since a batch may hold it yet.
func newRequest() *request { return requests.Get().(*request) }

// release gives back a request that its batch has ended. A lane's watch may yet look at its deadline.
func (r *request) release() {
	r.ctx, r.ask, r.key, r.script, r.params, r.own = nil, sluice.Ask{}, "", nil, nil, nil
	r.next, r.decision, r.reply, r.err, r.repeated = nil, sluice.Decision{}, nil, nil, false
	requests.Put(r)
}

// end hands the answer to the caller, unless the request has ended already.
func (r *request) end() {
	if d := r.deadline.Load(); d != 0 && r.deadline.CompareAndSwap(d, 0) {
		r.ended <- struct{}{}
	}
}

// expire ends the request if its time is up, and returns the time when it will be; 0 if it has ended. told tells
// whether others who wait for the same have been told so.
func (r *request) expire(now int64, told *told) int64 {
	d := r.deadline.Load()
	if d == 0 || d > now {
		return d
	}
	if r.deadline.CompareAndSwap(d, 0) {
		r.late, r.lateRepeated = true, told.again()
		r.ended <- struct{}{}
	}
	return 0
}

// gone tells whether nobody waits for the answer any more.
func (r *request) gone() bool { return r.deadline.Load() == 0 }

// wait returns once the lane has ended the request, or with ctx's error if that comes first.
func (r *request) wait(ctx context.Context) error {
	over := ctx.Done()
	if over == nil {
		<-r.ended
		return nil
	}
	select {
	case <-r.ended:
		return nil
	case <-over:
	}
	if d := r.deadline.Load(); d != 0 && r.deadline.CompareAndSwap(d, 0) {
		return ctx.Err()
	}
	<-r.ended
	return nil
}

// failure is the error of a request that has ended, for classify; nil if it has none.
func (r *request) failure() error {
	err, again := errLate, r.lateRepeated
	if !r.late {
		err, again = r.err, r.repeated
	}
	if err != nil && again {
		return repeated{err}
	}
	return err
}

// told counts those who have been told of one failure.
type told struct{ callers atomic.Int32 }

// again tells one more, and whether as many as count have been told before.
func (t *told) again() bool { return t.callers.Add(1) > counted }

// counted is how many failures a breaker counts of a batch that fails under many callers. One would do for a lost packet;
// with two, a server that hangs under many is found out by three batches.
const counted = 2

// repeated is an error that has been told to others who waited for the same batch. A breaker does not count it.
type repeated struct{ error }

// Repeated says so to package failover.
func (repeated) Repeated() bool  { return true }
func (e repeated) Unwrap() error { return e.error }

// errLate is the answer to a request whose time was up.
var errLate = fmt.Errorf("no answer within the store's timeout: %w", context.DeadlineExceeded)
