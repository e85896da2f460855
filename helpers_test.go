package sluice_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
)

func bucket(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func queue(count int64, period time.Duration, burst int64) sluice.Strategy {
	return sluice.Must(leaky.New(sluice.Limit{Count: count, Period: period, Burst: burst}))
}

func fixed(count int64, period time.Duration) sluice.Strategy {
	return sluice.Must(fixedwindow.New(sluice.Limit{Count: count, Period: period}))
}

// spy is a store, and no Batcher, that counts what it is asked. It may take its time and fail.
type spy struct {
	inner sluice.Store
	slow  time.Duration
	fail  func(sluice.Ask) error // nil: never

	mu      sync.Mutex
	asks    []sluice.Ask
	running int
	most    int // asks that ran at once
}

// newSpy returns a spy on a local store, which runs on clock, or on the system's or bubble's time.
func newSpy(clock func() time.Time) *spy {
	return &spy{inner: local.New(local.Options{Clock: clock})}
}

func (s *spy) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	s.mu.Lock()
	s.asks = append(s.asks, a)
	s.running++
	s.most = max(s.most, s.running)
	fail := s.fail
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	if s.slow > 0 {
		time.Sleep(s.slow)
	}
	if fail != nil {
		if err := fail(a); err != nil {
			return sluice.Decision{}, err
		}
	}
	return s.inner.Take(ctx, a)
}

// breaks makes all asks from now on fail.
func (s *spy) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = func(sluice.Ask) error { return err }
}

// seen returns the asks so far, and forgets them.
func (s *spy) seen() []sluice.Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	asks := s.asks
	s.asks, s.most = nil, 0
	return asks
}

func (s *spy) mostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// drain charges all that is left of a subject.
func drain(t *testing.T, l *sluice.Limiter, subject string) {
	t.Helper()
	d, err := l.Peek(t.Context(), subject, 0)
	if err == nil {
		d, err = l.AllowN(t.Context(), subject, d.Remaining)
	}
	if err != nil || !d.Allowed || d.Remaining != 0 {
		t.Fatalf("drain: %+v, %v", d, err)
	}
}

// left fails unless so much is left of a subject.
func left(t *testing.T, l *sluice.Limiter, subject string, want int64) {
	t.Helper()
	d, err := l.Peek(t.Context(), subject, 0)
	if err != nil || d.Remaining != want {
		t.Errorf("%q: Remaining %d, error %v; want %d", subject, d.Remaining, err, want)
	}
}

var errBoom = errors.New("boom")
