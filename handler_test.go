package sluice_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
)

// hello is a handler under test: it greets a user, and is limited.
func hello(l *sluice.Limiter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := l.Allow(r.Context(), r.Header.Get("X-User"))
		switch {
		case err != nil:
			http.Error(w, "try again", http.StatusServiceUnavailable)
		case !d.Allowed:
			if d.RetryAfter != sluice.Never {
				seconds := (d.RetryAfter + time.Second - 1) / time.Second
				w.Header().Set("Retry-After", fmt.Sprint(int64(seconds)))
			}
			http.Error(w, "slow down", http.StatusTooManyRequests)
		case d.Hold(r.Context()) == nil:
			fmt.Fprint(w, "hello")
		}
	})
}

// get asks as ann.
func get(h http.Handler) *http.Response {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-User", "ann")
	h.ServeHTTP(w, r)
	return w.Result()
}

func perMinute(n int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: n, Period: time.Minute, Burst: n}))
}

// In a handler's unit test, step the clock of a local store: no test has to sleep.
func Example_steppedClock() {
	now := noon()
	store := local.New(local.Options{Clock: func() time.Time { return now }})
	h := hello(sluice.New(store, perMinute(2), "hello"))

	fmt.Println(get(h).Status)
	fmt.Println(get(h).Status)
	denied := get(h)
	fmt.Println(denied.Status, denied.Header.Get("Retry-After"))
	now = now.Add(30 * time.Second)
	fmt.Println(get(h).Status)
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests 30
	// 200 OK
}

// To see what a handler does when the store is away, give it one that fails.
func Example_failingStore() {
	away := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, fmt.Errorf("%w: connection refused", sluice.ErrUnavailable)
	})
	fmt.Println(get(hello(sluice.New(away, perMinute(2), "hello"))).Status)
	// Output: 503 Service Unavailable
}

// To see what a handler does when a request is denied, give it a store that denies.
func Example_denyingStore() {
	full := sluice.StoreFunc(func(_ context.Context, a sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{Limit: a.Strategy.Limit().Burst, RetryAfter: 1500 * time.Millisecond}, nil
	})
	denied := get(hello(sluice.New(full, perMinute(2), "hello")))
	fmt.Println(denied.Status, denied.Header.Get("Retry-After"))
	// Output: 429 Too Many Requests 2
}

func TestHandlerSteppedClock(t *testing.T) {
	now := noon()
	store := local.New(local.Options{Clock: func() time.Time { return now }})
	h := hello(sluice.New(store, perMinute(2), "hello"))
	for i, c := range []struct {
		after  time.Duration
		status int
		retry  string
	}{
		{0, 200, ""}, {0, 200, ""}, {0, 429, "30"}, {29 * time.Second, 429, "1"}, {time.Second, 200, ""}, {0, 429, "30"},
	} {
		now = now.Add(c.after)
		if got := get(h); got.StatusCode != c.status || got.Header.Get("Retry-After") != c.retry {
			t.Errorf("request %d: %s, Retry-After %q; want %d, %q", i+1, got.Status, got.Header.Get("Retry-After"), c.status, c.retry)
		}
	}
}

// In a synctest bubble a store with no clock of its own runs on the bubble's virtual time.
func TestHandlerSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hello(sluice.New(local.New(local.Options{}), perMinute(2), "hello"))
		for i, want := range []int{200, 200, 429} {
			if got := get(h); got.StatusCode != want {
				t.Errorf("request %d: %s, want %d", i+1, got.Status, want)
			}
		}
		time.Sleep(30*time.Second - time.Microsecond)
		if got := get(h); got.StatusCode != 429 {
			t.Errorf("1µs too early: %s", got.Status)
		}
		time.Sleep(time.Microsecond)
		if got := get(h); got.StatusCode != 200 {
			t.Errorf("after Retry-After: %s", got.Status)
		}
	})
}

// Hold and Wait take virtual time, too.
func TestHandlerSynctestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := sluice.Must(leaky.New(sluice.Limit{Count: 1, Period: time.Minute, Burst: 3}))
		l := sluice.New(local.New(local.Options{}), one, "hello")
		start, h := time.Now(), hello(l)
		acted := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				get(h)
				acted <- time.Since(start)
			}()
		}
		for i := range 3 {
			if got, want := <-acted, time.Duration(i)*time.Minute; got != want {
				t.Errorf("request %d acts after %v, want %v", i+1, got, want)
			}
		}
		start = time.Now()
		if err := l.Wait(t.Context(), "ann", 1); err != nil || time.Since(start) != time.Minute {
			t.Errorf("Wait: %v after %v, want a minute behind the third", err, time.Since(start))
		}
	})
}
