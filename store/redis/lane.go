package redis

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A lane carries requests to Redis in the order in which they come, one batch after another: what comes while a batch
// is away leaves together in the next one, and a request that finds the lane empty leaves at once. Requests on one key
// always take the same lane.
//
// The lane has a goroutine while it has work and for a moment after, since a new one would have to grow its stack each
// time, which costs a lone caller as much as all else here. A batch that is away for long does not hold
// up the others: it is left behind, and the next one leaves beside it.
type lane struct {
	s *Store

	mu      sync.Mutex
	queue   []*request
	spare   []*request // an empty slice, to be the next queue
	busy    bool       // a goroutine takes the queue
	resting bool       // a goroutine waits for wake
	closed  bool       // none is to rest
	wake    chan struct{}
	rested  *time.Timer // ends a rest
	current *flight     // the batch that the queue waits for
	away    []*flight   // all that are under way, those left behind included
	watch   *time.Timer
	fires   int64 // when watch fires, ns since the store was made; 0: it does not
}

// flight is a batch under way.
type flight struct {
	requests []*request
	left     int64 // when it left, ns since the store was made
	behind   bool  // left behind
	told     told  // that it failed
}

// maxBatch is how many requests leave together: more would wait for replies that are ready.
const maxBatch = 256

// do carries r, and returns when it has ended. The error is the caller's own: of ctx, or that too many commands hang.
func (l *lane) do(ctx context.Context, r *request) error {
	s := l.s
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.abandoned.Load() >= maxAbandoned {
		return errAbandoned
	}
	now := s.elapsed()
	r.ctx = ctx
	r.deadline.Store(now + int64(s.timeout))
	l.mu.Lock()
	l.queue = append(l.queue, r)
	if !l.busy || l.leaveBehind(now) {
		l.start()
	}
	due := now + int64(s.patience)
	if l.current != nil {
		due = l.current.left + int64(s.patience)
	}
	if l.fires == 0 || l.fires > due {
		l.arm(now, due)
	}
	l.mu.Unlock()
	return r.wait(ctx)
}

// start has a goroutine take the queue. l.mu is held.
func (l *lane) start() {
	l.busy = true
	if l.resting {
		l.resting = false
		l.wake <- struct{}{}
		return
	}
	go l.drive()
}

// drive sends one batch after another until no more come, or its batch was left behind.
func (l *lane) drive() {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	for {
		f, rest := l.depart()
		if f == nil {
			if rest && l.rest() {
				continue
			}
			return
		}
		l.s.carry(b, f)
		if l.arrived(f) {
			return
		}
		if len(f.requests) > 1 {
			runtime.Gosched() // those who have their answers ask again: they are to leave together
		}
	}
}

// linger is how long a goroutine rests.
const linger = 100 * time.Millisecond

// rest waits for more to do, and returns whether there is.
func (l *lane) rest() bool {
	select {
	case <-l.wake:
		return true
	case <-l.rested.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resting {
		l.resting = false
		return false
	}
	<-l.wake
	return true
}

// close sends a resting goroutine home, and lets none rest any more.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.resting {
		l.resting = false
		l.wake <- struct{}{}
	}
}

// depart takes what is in the queue; if nothing is, it tells whether to rest.
func (l *lane) depart() (f *flight, rest bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.busy, l.resting = false, !l.closed
		if l.rested == nil {
			l.rested = time.NewTimer(linger)
		} else if l.resting {
			l.rested.Reset(linger)
		}
		return nil, l.resting
	}
	f = &flight{requests: l.queue, left: l.s.elapsed()}
	if len(l.queue) > maxBatch {
		f.requests = slices.Clone(l.queue[:maxBatch])
		l.queue = slices.Delete(l.queue, 0, maxBatch)
	} else {
		l.queue, l.spare = l.spare, nil
	}
	l.current = f
	l.away = append(l.away, f)
	return f, false
}

// arrived tells that a batch has its answers, and returns whether it was left behind.
func (l *lane) arrived(f *flight) (behind bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = slices.DeleteFunc(l.away, func(other *flight) bool { return other == f })
	if f.behind {
		l.s.abandoned.Add(-1)
		return true
	}
	l.current = nil
	clear(f.requests)
	l.spare = f.requests[:0]
	return false
}

// leaveBehind stops waiting for the batch under way if patience with it is over, and returns whether somebody must
// drive instead. l.mu is held.
func (l *lane) leaveBehind(now int64) bool {
	if l.current == nil || now < l.current.left+int64(l.s.patience) || len(l.queue) == 0 {
		return false
	}
	if l.s.abandoned.Add(1) > maxAbandoned {
		l.s.abandoned.Add(-1)
		return false
	}
	l.current.behind = true
	l.current = nil
	return true
}

// arm sets the watch. l.mu is held.
func (l *lane) arm(now, at int64) {
	l.fires = at
	after := time.Duration(max(at-now, 1))
	if l.watch == nil {
		l.watch = time.AfterFunc(after, l.look)
		return
	}
	l.watch.Reset(after)
}

// look ends the requests whose time is up, leaves behind a batch that is away for long while others wait, and sets the
// watch to the next such time. In good times it fires once in a while and finds nothing, which is cheaper than a
// timer for each request.
func (l *lane) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.elapsed()
	if l.leaveBehind(now) {
		go l.drive()
	}
	var hopeless told
	next := expire(l.queue, now, 0, &hopeless)
	for _, f := range l.away {
		next = expire(f.requests, now, next, &f.told)
	}
	if l.current != nil && len(l.queue) > 0 {
		if due := l.current.left + int64(l.s.patience); due > now { // else too many are left behind
			next = earlier(next, due)
		}
	}
	l.fires = 0
	if next != 0 {
		l.arm(now, next)
	}
}

// expire ends what is late, and returns the earliest deadline of the others, or next if that is earlier.
func expire(requests []*request, now, next int64, told *told) int64 {
	for _, r := range requests {
		next = earlier(next, r.expire(now, told))
	}
	return next
}

// earlier returns the lesser of two times of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
