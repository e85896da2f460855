package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
)

// waitTest runs f in a bubble, where time is virtual, and checks that no queue is left.
func waitTest(t *testing.T, st sluice.Strategy, f func(t *testing.T, l *sluice.Limiter, s *spy)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy(nil)
		l := sluice.New(s, st, "rule")
		f(t, l, s)
		synctest.Wait()
		if subjects, _ := l.Waiting(""); subjects != 0 {
			t.Errorf("%d queues are left", subjects)
		}
	})
}

// lasting is a context with a deadline.
func lasting(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// atOnce fails unless f returns an error of that kind and takes no time.
func atOnce(t *testing.T, want error, f func() error) {
	t.Helper()
	start := time.Now()
	if err := f(); !errors.Is(err, want) || time.Since(start) != 0 {
		t.Errorf("%v after %v, want %v at once", err, time.Since(start), want)
	}
}

func TestWaitNever(t *testing.T) {
	for _, st := range []sluice.Strategy{bucket(10, time.Second, 5), queue(10, time.Second, 5), fixed(5, time.Second)} {
		waitTest(t, st, func(t *testing.T, l *sluice.Limiter, s *spy) {
			atOnce(t, sluice.ErrNever, func() error { return l.Wait(t.Context(), "a", 6) })
			drain(t, l, "a")
			s.seen()
			atOnce(t, sluice.ErrNever, func() error { return l.Wait(t.Context(), "a", 1<<62) })
			if n := len(s.seen()); n != 0 {
				t.Errorf("the store was asked %d times", n)
			}
		})
	}
}

// A store may know better than a fresh state, as the fallback does with a share of the limit.
func TestWaitNeverByTheStore(t *testing.T) {
	waitTest(t, bucket(10, time.Second, 5), func(t *testing.T, _ *sluice.Limiter, _ *spy) {
		denies := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
			return sluice.Decision{Limit: 2, RetryAfter: sluice.Never}, nil
		})
		l := sluice.New(denies, bucket(10, time.Second, 5), "rule")
		atOnce(t, sluice.ErrNever, func() error { return l.Wait(t.Context(), "a", 3) })
	})
}

func TestWaitCost(t *testing.T) {
	waitTest(t, bucket(10, time.Second, 5), func(t *testing.T, l *sluice.Limiter, s *spy) {
		drain(t, l, "a")
		s.seen()
		atOnce(t, sluice.ErrCost, func() error { return l.Wait(t.Context(), "a", -1) })
		if n := len(s.seen()); n != 0 {
			t.Errorf("n < 0: the store was asked %d times", n)
		}
		atOnce(t, nil, func() error { return l.Wait(t.Context(), "a", 0) })
		left(t, l, "a", 0)
	})
}

func TestWaitDeadline(t *testing.T) {
	for _, st := range []sluice.Strategy{bucket(1, time.Second, 5), queue(1, time.Second, 5)} {
		waitTest(t, st, func(t *testing.T, l *sluice.Limiter, _ *spy) {
			if _, err := l.AllowN(t.Context(), "a", 4); err != nil {
				t.Fatal(err)
			}
			for _, wait := range []time.Duration{time.Millisecond, time.Second - time.Microsecond, time.Second} {
				ctx := lasting(t, wait)
				atOnce(t, context.DeadlineExceeded, func() error { return l.Wait(ctx, "a", 2) })
				left(t, l, "a", 1)
			}
		})
	}
}

// A window's wait is until the window ends.
func TestWaitDeadlineOfWindows(t *testing.T) {
	sliding := sluice.Must(slidingwindow.New(sluice.Limit{Count: 5, Period: time.Minute}))
	for _, st := range []sluice.Strategy{fixed(5, time.Minute), sliding} {
		waitTest(t, st, func(t *testing.T, l *sluice.Limiter, _ *spy) {
			drain(t, l, "a")
			ctx := lasting(t, time.Minute-time.Microsecond)
			atOnce(t, context.DeadlineExceeded, func() error { return l.Wait(ctx, "a", 1) })
			left(t, l, "a", 0)
		})
	}
}

func TestWaitWithADoneContext(t *testing.T) {
	waitTest(t, bucket(1, time.Second, 5), func(t *testing.T, l *sluice.Limiter, s *spy) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		atOnce(t, context.Canceled, func() error { return l.Wait(ctx, "a", 1) })
		late := lasting(t, -time.Second)
		atOnce(t, context.DeadlineExceeded, func() error { return l.Wait(late, "a", 1) })
		if n := len(s.seen()); n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// Wait takes as long as RetryAfter says, not one tick more, and asks no more than twice.
func TestWaitTakesRetryAfter(t *testing.T) {
	sliding := sluice.Must(slidingwindow.New(sluice.Limit{Count: 5, Period: 7 * time.Second}))
	for _, st := range []sluice.Strategy{
		bucket(3, time.Second, 5), bucket(5, time.Hour, 5), bucket(999_983, time.Second, 7),
		fixed(5, 7*time.Second), sliding,
	} {
		for _, n := range []int64{1, 3, 5} {
			waitTest(t, st, func(t *testing.T, l *sluice.Limiter, s *spy) {
				time.Sleep(1234567 * time.Nanosecond)
				drain(t, l, "a")
				d, err := l.Peek(t.Context(), "a", n)
				if err != nil || d.RetryAfter <= 0 {
					t.Fatalf("Peek: %+v, %v", d, err)
				}
				s.seen()
				start := time.Now()
				if err := l.Wait(t.Context(), "a", n); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != d.RetryAfter {
					t.Errorf("%v: n %d waited %v, want %v", st.Limit(), n, took, d.RetryAfter)
				}
				if asks := s.seen(); len(asks) != 2 || asks[0].N != n || asks[1].Mode != sluice.Charge {
					t.Errorf("%v: n %d: asks %+v; want two charges", st.Limit(), n, asks)
				}
			})
		}
	}
}

// 50 callers are served in the order in which they came, behind a single ask: two each, one that is denied and one
// that passes.
func TestWaitInOrder(t *testing.T) {
	waitTest(t, bucket(10, time.Second, 1), func(t *testing.T, l *sluice.Limiter, s *spy) {
		drain(t, l, "a")
		s.seen()
		start, served := time.Now(), make(chan int, 50)
		for i := range 50 {
			go func() {
				if err := l.Wait(t.Context(), "a", 1); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
				served <- i
			}()
			synctest.Wait()
		}
		if _, callers := l.Waiting("a"); callers != 50 {
			t.Errorf("%d callers wait, want 50", callers)
		}
		if n := len(s.seen()); n != 1 {
			t.Errorf("50 callers asked %d times before any wait was over, want once", n)
		}
		for i := range 50 {
			got, at := <-served, time.Since(start)
			if want := time.Duration(i+1) * 100 * time.Millisecond; got != i || at != want {
				t.Errorf("caller %d is served as number %d after %v; want %d after %v", got, i, at, i, want)
			}
		}
		if n := len(s.seen()); n != 50+49 {
			t.Errorf("the store was asked %d times more, want 50 that passed and 49 that were denied", n)
		}
	})
}

// With a store that takes its time, there is never more than one ask on its way.
func TestWaitBehindASingleAsk(t *testing.T) {
	waitTest(t, bucket(100, time.Second, 5), func(t *testing.T, l *sluice.Limiter, s *spy) {
		s.slow = 3 * time.Millisecond
		var done sync.WaitGroup
		for range 40 {
			done.Go(func() {
				if err := l.Wait(t.Context(), "a", 1); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if most := s.mostAtOnce(); most != 1 {
			t.Errorf("%d asks at once", most)
		}
		passed := 0
		for _, a := range s.seen() {
			if a.Mode != sluice.Charge || a.N != 1 {
				t.Errorf("ask %+v", a)
			}
			passed++
		}
		if passed > 2*40 {
			t.Errorf("%d asks for 40 callers, want at most 80", passed)
		}
	})
}

// A large cost is not overtaken by small ones that would fit.
func TestWaitStarvesNobody(t *testing.T) {
	costs := []int64{5, 1, 1, 4, 1, 5, 2, 1, 3, 5}
	waitTest(t, bucket(10, time.Second, 5), func(t *testing.T, l *sluice.Limiter, _ *spy) {
		drain(t, l, "a")
		start, served := time.Now(), make(chan int, len(costs))
		for i, n := range costs {
			go func() {
				if err := l.Wait(t.Context(), "a", n); err != nil {
					t.Error(err)
				}
				served <- i
			}()
			synctest.Wait()
		}
		total := int64(0)
		for i, n := range costs {
			total += n
			got, at := <-served, time.Since(start)
			if want := time.Duration(total) * 100 * time.Millisecond; got != i || at != want {
				t.Errorf("caller %d is served as number %d after %v; want %d after %v", got, i, at, i, want)
			}
		}
	})
}

// Those who arrive later also come later, where a crowd of them never ends.
func TestWaitOutlastsNewcomers(t *testing.T) {
	waitTest(t, bucket(10, time.Second, 5), func(t *testing.T, l *sluice.Limiter, _ *spy) {
		drain(t, l, "a")
		start, large := time.Now(), make(chan time.Duration, 1)
		go func() {
			if err := l.Wait(t.Context(), "a", 5); err != nil {
				t.Error(err)
			}
			large <- time.Since(start)
		}()
		synctest.Wait()
		var small sync.WaitGroup
		for range 30 {
			small.Go(func() {
				if err := l.Wait(t.Context(), "a", 1); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(50 * time.Millisecond)
		}
		if took := <-large; took != 500*time.Millisecond {
			t.Errorf("5 of 10 a second took %v, want 500ms", took)
		}
		small.Wait()
	})
}

func TestWaitSubjectsAreApart(t *testing.T) {
	waitTest(t, bucket(1, time.Minute, 1), func(t *testing.T, l *sluice.Limiter, _ *spy) {
		drain(t, l, "a")
		go l.Wait(t.Context(), "a", 1)
		synctest.Wait()
		atOnce(t, nil, func() error { return l.Wait(t.Context(), "b", 1) })
		if subjects, callers := l.Waiting("a"); subjects != 1 || callers != 1 {
			t.Errorf("%d queues, %d callers; want a's alone", subjects, callers)
		}
		time.Sleep(time.Minute)
	})
}

// A caller that is cancelled leaves the queue, be it the first or not, and the next goes on.
func TestWaitCancelled(t *testing.T) {
	for _, gone := range []int{0, 1, 2} {
		waitTest(t, bucket(1, time.Second, 1), func(t *testing.T, l *sluice.Limiter, s *spy) {
			drain(t, l, "a")
			start := time.Now()
			var ends [3]chan error
			var cancels [3]context.CancelFunc
			for i := range ends {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ends[i], cancels[i] = make(chan error, 1), cancel
				go func() { ends[i] <- l.Wait(ctx, "a", 1) }()
				synctest.Wait()
			}
			time.Sleep(300 * time.Millisecond)
			s.seen()
			cancels[gone]()
			synctest.Wait()
			if n := len(s.seen()); n > 1 || n == 1 && gone != 0 {
				t.Errorf("caller %d is cancelled: %d asks; want one, of the next in line, if it was the first", gone, n)
			}
			if _, callers := l.Waiting("a"); callers != 2 {
				t.Errorf("caller %d is cancelled: %d wait, want 2", gone, callers)
			}
			served := time.Duration(0)
			for i, end := range ends {
				err := <-end
				if i == gone {
					if !errors.Is(err, context.Canceled) {
						t.Errorf("caller %d, cancelled: %v", i, err)
					}
					continue
				}
				if served += time.Second; err != nil || time.Since(start) != served {
					t.Errorf("caller %d is cancelled: %d served after %v with %v, want %v", gone, i, time.Since(start), err, served)
				}
			}
			left(t, l, "a", 0)
		})
	}
}

// Many come and go at random, and each call ends: with nil, or by its own deadline.
func TestWaitCrowd(t *testing.T) {
	waitTest(t, bucket(100, time.Second, 10), func(t *testing.T, l *sluice.Limiter, s *spy) {
		s.slow = time.Millisecond
		var done sync.WaitGroup
		var mu sync.Mutex
		served := int64(0)
		for i := range 300 {
			done.Go(func() {
				time.Sleep(time.Duration(i*i%701) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*7919%1000)*time.Millisecond)
				defer cancel()
				n := int64(i % 4)
				start := time.Now()
				err := l.Wait(ctx, fmt.Sprint(i%3), n)
				deadline, _ := ctx.Deadline()
				switch {
				case err == nil:
					mu.Lock()
					served += n
					mu.Unlock()
				case !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("caller %d: %v", i, err)
				case time.Since(deadline) > s.slow && time.Since(start) > s.slow:
					t.Errorf("caller %d returns %v after its deadline", i, time.Since(deadline))
				}
			})
		}
		done.Wait()
		most := int64(0)
		for _, subject := range []string{"0", "1", "2"} {
			d, err := l.Peek(t.Context(), subject, 0)
			if err != nil {
				t.Fatal(err)
			}
			most += d.Limit
		}
		if most += 3 * 1800 / 10; served == 0 || served > most {
			t.Errorf("%d units served, want at most %d", served, most)
		}
	})
}

// A caller whose deadline lies before the first's next try can't be served: it is told at once.
func TestWaitQueuedDeadline(t *testing.T) {
	waitTest(t, bucket(1, 10*time.Second, 1), func(t *testing.T, l *sluice.Limiter, s *spy) {
		drain(t, l, "a")
		go l.Wait(t.Context(), "a", 1)
		synctest.Wait()
		s.seen()
		time.Sleep(2 * time.Second)
		for _, wait := range []time.Duration{time.Second, 8*time.Second - 1, 8 * time.Second} {
			ctx := lasting(t, wait)
			atOnce(t, context.DeadlineExceeded, func() error { return l.Wait(ctx, "a", 1) })
		}
		if n := len(s.seen()); n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
		ctx := lasting(t, 20*time.Second)
		if err := l.Wait(ctx, "a", 1); err != nil {
			t.Errorf("with time enough for two: %v", err)
		}
	})
}

// One that was queued while the first's ask was on its way is told when the answer comes.
func TestWaitQueuedWhileTheFirstAsks(t *testing.T) {
	waitTest(t, bucket(1, 10*time.Second, 1), func(t *testing.T, l *sluice.Limiter, s *spy) {
		drain(t, l, "a")
		s.slow = time.Millisecond
		go l.Wait(t.Context(), "a", 1)
		synctest.Wait()
		start := time.Now()
		errs := make(chan error, 3)
		for _, wait := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
			ctx := lasting(t, wait)
			go func() { errs <- l.Wait(ctx, "a", 1) }()
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Millisecond {
				t.Errorf("%v after %v, want context.DeadlineExceeded when the first's ask is answered", err, time.Since(start))
			}
		}
		synctest.Wait()
		if _, callers := l.Waiting("a"); callers != 2 {
			t.Errorf("%d callers wait, want the first and the one with time enough", callers)
		}
		if err := <-errs; err != nil {
			t.Errorf("with time enough: %v", err)
		}
	})
}

// lingering is a context whose caller takes a second to see that it was called back.
type lingering struct {
	context.Context
	calls atomic.Int64
}

func (c *lingering) Err() error {
	if c.calls.Add(1) == 2 { // Wait asks for it first, and again when it has left the queue
		time.Sleep(time.Second)
	}
	return c.Context.Err()
}

// A caller that was sent away, and is slow to go, leaves alone the queue that has begun since.
func TestWaitSentAwayLeavesLate(t *testing.T) {
	waitTest(t, bucket(1, 10*time.Second, 1), func(t *testing.T, l *sluice.Limiter, s *spy) {
		drain(t, l, "a")
		s.slow = time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		go l.Wait(ctx, "a", 1)
		synctest.Wait()
		slow := &lingering{Context: lasting(t, 5*time.Second)}
		sentAway, next := make(chan error, 1), make(chan error, 1)
		go func() { sentAway <- l.Wait(slow, "a", 1) }()
		time.Sleep(2 * time.Millisecond)
		cancel()
		synctest.Wait()
		go func() { next <- l.Wait(t.Context(), "a", 1) }()
		if err := <-sentAway; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("sent away with %v", err)
		}
		if subjects, callers := l.Waiting("a"); subjects != 1 || callers != 1 {
			t.Errorf("%d queues, %d callers after the other has gone; want one of one", subjects, callers)
		}
		if err := <-next; err != nil {
			t.Error(err)
		}
	})
}

// While a new first asks, nobody is sent away for the wait of the one before.
func TestWaitNewFirst(t *testing.T) {
	waitTest(t, bucket(1, 10*time.Second, 5), func(t *testing.T, l *sluice.Limiter, s *spy) {
		if _, err := l.AllowN(t.Context(), "a", 3); err != nil {
			t.Fatal(err)
		}
		s.slow = time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		go l.Wait(ctx, "a", 5)
		time.Sleep(time.Second)
		ends := make(chan error, 2)
		go func() { ends <- l.Wait(t.Context(), "a", 1) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		soon := lasting(t, 5*time.Second)
		go func() { ends <- l.Wait(soon, "a", 1) }()
		for range 2 {
			if err := <-ends; err != nil {
				t.Errorf("there is room for both: %v", err)
			}
		}
	})
}

// A place in a leaky bucket's queue that is beyond the deadline is given back.
func TestWaitLeakyDeadline(t *testing.T) {
	waitTest(t, queue(10, time.Second, 5), func(t *testing.T, l *sluice.Limiter, s *spy) {
		if _, err := l.AllowN(t.Context(), "a", 3); err != nil {
			t.Fatal(err)
		}
		for _, wait := range []time.Duration{100 * time.Millisecond, 300*time.Millisecond - 1, 300 * time.Millisecond} {
			ctx := lasting(t, wait)
			atOnce(t, context.DeadlineExceeded, func() error { return l.Wait(ctx, "a", 1) })
			left(t, l, "a", 2)
		}
		s.fail = func(a sluice.Ask) error {
			if a.Mode == sluice.Settle {
				return errBoom
			}
			return nil
		}
		ctx := lasting(t, 100*time.Millisecond)
		err := l.Wait(ctx, "a", 1)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBoom) {
			t.Errorf("the store can't take it back: %v; want both errors", err)
		}
	})
}

func TestWaitHoldsForLeaky(t *testing.T) {
	waitTest(t, queue(10, time.Second, 3), func(t *testing.T, l *sluice.Limiter, s *spy) {
		start := time.Now()
		acted := make(chan time.Duration, 10)
		for range 10 {
			go func() {
				if err := l.Wait(t.Context(), "a", 1); err != nil {
					t.Error(err)
				}
				acted <- time.Since(start)
			}()
		}
		synctest.Wait()
		left(t, l, "a", 0) // one acts, two hold, and did not wait for one another to ask
		for i := range 10 {
			if got, want := <-acted, time.Duration(i)*100*time.Millisecond; got != want {
				t.Errorf("number %d acts after %v, want %v", i, got, want)
			}
		}
		if most := s.mostAtOnce(); most != 1 {
			t.Errorf("%d asks at once", most)
		}
	})
}

// One that is cancelled while it holds will not act: its place is given back.
func TestWaitCancelledWhileHolding(t *testing.T) {
	waitTest(t, queue(1, time.Second, 5), func(t *testing.T, l *sluice.Limiter, _ *spy) {
		if _, err := l.AllowN(t.Context(), "a", 3); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() { end <- l.Wait(ctx, "a", 2) }()
		synctest.Wait()
		left(t, l, "a", 0)
		cancel()
		if err := <-end; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled while holding: %v", err)
		}
		left(t, l, "a", 2)
	})
}

func TestWaitStoreErrors(t *testing.T) {
	waitTest(t, bucket(1, time.Second, 1), func(t *testing.T, l *sluice.Limiter, s *spy) {
		drain(t, l, "a")
		ends := make(chan error, 3)
		for range 3 {
			go func() { ends <- l.Wait(t.Context(), "a", 1) }()
			synctest.Wait()
		}
		s.breaks(errBoom)
		start := time.Now()
		for range 3 {
			if err := <-ends; err != errBoom {
				t.Errorf("the store's error became %v", err)
			}
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("the errors came after %v, want 1s: all when the first asks again", took)
		}
	})
}

// With makes limiters of other limits on the same keys: one queue.
func TestWaitWithSiblings(t *testing.T) {
	waitTest(t, bucket(1, time.Second, 1), func(t *testing.T, free *sluice.Limiter, s *spy) {
		s.slow = time.Millisecond
		paid := free.With(bucket(2, time.Second, 2))
		drain(t, free, "a")
		s.seen()
		served := make(chan int, 6)
		for i := range 6 {
			l := []*sluice.Limiter{free, paid}[i%2]
			go func() {
				if err := l.Wait(t.Context(), "a", 1); err != nil {
					t.Error(err)
				}
				served <- i
			}()
			synctest.Wait()
		}
		if _, callers := paid.Waiting("a"); callers != 6 {
			t.Errorf("%d callers wait in the sibling's queue, want 6", callers)
		}
		var order []int
		for range 6 {
			order = append(order, <-served)
		}
		if !slices.IsSorted(order) {
			t.Errorf("served in the order %v", order)
		}
		if most := s.mostAtOnce(); most != 1 {
			t.Errorf("%d asks at once", most)
		}
	})
}
