package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
)

// noon is a clock that stands still, so that the examples print the same each time. A program leaves Clock out.
func noon() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// Five logins a minute for each address, ten at once.
func Example() {
	limit := sluice.Limit{Count: 5, Period: time.Minute, Burst: 10}
	login := sluice.New(local.New(local.Options{}), sluice.Must(tokenbucket.New(limit)), "login")

	ctx := context.Background() // a request's
	d, err := login.Allow(ctx, "203.0.113.7")
	switch {
	case err != nil:
		fmt.Println("the store could not decide:", err)
	case !d.Allowed:
		fmt.Println("denied, retry after", d.RetryAfter)
	case d.Hold(ctx) != nil: // a leaky bucket spaces requests out; the others return at once
		fmt.Println("gone")
	default:
		fmt.Println("allowed,", d.Remaining, "remaining")
	}
	// Output: allowed, 9 remaining
}

func ExampleLimiter_Allow() {
	limit := sluice.Limit{Count: 5, Period: time.Minute, Burst: 2}
	login := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "login")
	ctx := context.Background()
	for range 3 {
		d, err := login.Allow(ctx, "203.0.113.7")
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := d.Hold(ctx); err != nil {
			return
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 12s
}

// A cost above the burst is denied for ever, and charges nothing; a negative one is an error.
func ExampleLimiter_AllowN() {
	limit := sluice.Limit{Count: 100, Period: time.Second, Burst: 100}
	export := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "export")
	ctx := context.Background()
	for _, rows := range []int64{80, 30, 101, 0, -1} {
		d, err := export.AllowN(ctx, "acme", rows)
		if err != nil {
			fmt.Println(rows, "rows:", err)
			continue
		}
		if err := d.Hold(ctx); err != nil {
			return
		}
		fmt.Println(rows, "rows:", d.Allowed, d.Remaining, d.RetryAfter == sluice.Never)
	}
	// Output:
	// 80 rows: true 20 false
	// 30 rows: false 20 false
	// 101 rows: false 20 true
	// 0 rows: true 20 false
	// -1 rows: sluice: cost below 0: N is -1, want at least 0
}

// A peek charges nothing, so that its answer is the same again.
func ExampleLimiter_Peek() {
	limit := sluice.Limit{Count: 10, Period: time.Minute}
	api := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(fixedwindow.New(limit)), "api")
	ctx := context.Background()
	if _, err := api.AllowN(ctx, "acme", 4); err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []int64{6, 6, 7} {
		d, err := api.Peek(ctx, "acme", n)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter, d.ResetAfter)
	}
	// Output:
	// true 6 0s 1m0s
	// true 6 0s 1m0s
	// false 6 1m0s 1m0s
}

// Wait is for work that may be late. It gives up at once where waiting is of no use.
func ExampleLimiter_Wait() {
	store := local.New(local.Options{})
	mail := sluice.New(store, sluice.Must(tokenbucket.New(sluice.Limit{Count: 1000, Period: time.Second, Burst: 1})), "mail")
	ctx := context.Background()
	for range 3 {
		if err := mail.Wait(ctx, "example.com", 1); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("sent")
	}
	fmt.Println(errors.Is(mail.Wait(ctx, "example.com", 2), sluice.ErrNever))

	digest := sluice.New(store, sluice.Must(fixedwindow.New(sluice.Limit{Count: 1, Period: 5000 * 24 * time.Hour})), "digest")
	soon, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fmt.Println(digest.Wait(soon, "example.com", 1))
	fmt.Println(digest.Wait(soon, "example.com", 1))
	// Output:
	// sent
	// sent
	// sent
	// true
	// <nil>
	// context deadline exceeded
}

// What a call to a language model costs is known only afterwards: reserve an estimate, then settle.
func ExampleLimiter_Reserve() {
	limit := sluice.Limit{Count: 1000, Period: time.Minute, Burst: 1000}
	tokens := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "tokens")
	complete := func(ctx context.Context, prompt string) (text string, used int64, err error) {
		if prompt == "" {
			return "", 0, errors.New("no prompt")
		}
		return "hello", 150, nil
	}
	answer := func(ctx context.Context, prompt string) error {
		r, err := tokens.Reserve(ctx, "acme", 600)
		if err != nil {
			return err
		}
		if d := r.Decision(); !d.Allowed {
			return fmt.Errorf("over the limit, retry after %v", d.RetryAfter)
		}
		defer r.Cancel(ctx) // gives the estimate back, unless it was settled
		if err := r.Decision().Hold(ctx); err != nil {
			return err
		}
		_, used, err := complete(ctx, prompt)
		if err != nil {
			return err
		}
		return r.Settle(ctx, used)
	}

	ctx := context.Background()
	for _, prompt := range []string{"hi", "", "hi", "hi", "hi"} {
		err := answer(ctx, prompt)
		d, _ := tokens.Peek(ctx, "acme", 0)
		fmt.Println(err, d.Remaining)
	}
	// Output:
	// <nil> 850
	// no prompt 850
	// <nil> 700
	// <nil> 550
	// over the limit, retry after 3s 550
}

// A refused reservation holds the denial. To settle or cancel it does nothing.
func ExampleReservation_Decision() {
	limit := sluice.Limit{Count: 10, Period: time.Second, Burst: 10}
	jobs := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "jobs")
	ctx := context.Background()
	r, err := jobs.Reserve(ctx, "acme", 11)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Decision().Allowed, r.Decision().RetryAfter == sluice.Never)
	fmt.Println(r.Settle(ctx, 5), r.Cancel(ctx))
	d, _ := jobs.Peek(ctx, "acme", 0)
	fmt.Println(d.Remaining)
	// Output:
	// false true
	// <nil> <nil>
	// 10
}

// More than the estimate is owed, whether or not it fits.
func ExampleReservation_Settle() {
	limit := sluice.Limit{Count: 10, Period: time.Second, Burst: 10}
	jobs := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "jobs")
	ctx := context.Background()
	r, err := jobs.Reserve(ctx, "acme", 4)
	if err != nil || !r.Decision().Allowed {
		return
	}
	fmt.Println(r.Settle(ctx, 12))
	d, _ := jobs.Peek(ctx, "acme", 1)
	fmt.Println(d.Remaining, d.RetryAfter)
	// Output:
	// <nil>
	// 0 300ms
}

func ExampleReservation_Cancel() {
	limit := sluice.Limit{Count: 10, Period: time.Second, Burst: 10}
	jobs := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "jobs")
	ctx := context.Background()
	r, err := jobs.Reserve(ctx, "acme", 4)
	if err != nil || !r.Decision().Allowed {
		return
	}
	fmt.Println(r.Cancel(ctx))
	d, _ := jobs.Peek(ctx, "acme", 0)
	fmt.Println(d.Remaining)
	// Output:
	// <nil>
	// 10
}

// A request that did not happen after all is given back.
func ExampleLimiter_Refund() {
	limit := sluice.Limit{Count: 10, Period: time.Minute, Burst: 10}
	uploads := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(tokenbucket.New(limit)), "uploads")
	ctx := context.Background()
	d, err := uploads.AllowN(ctx, "acme", 3)
	if err != nil || !d.Allowed || d.Hold(ctx) != nil {
		return
	}
	fmt.Println(d.Remaining)
	if err := uploads.Refund(ctx, "acme", d); err != nil {
		fmt.Println(err)
		return
	}
	d, _ = uploads.Peek(ctx, "acme", 0)
	fmt.Println(d.Remaining)
	// Output:
	// 7
	// 10
}

func ExampleLimiter_Reset() {
	limit := sluice.Limit{Count: 3, Period: time.Hour}
	codes := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(fixedwindow.New(limit)), "codes")
	ctx := context.Background()
	if _, err := codes.AllowN(ctx, "ann", 3); err != nil {
		fmt.Println(err)
		return
	}
	before, _ := codes.Peek(ctx, "ann", 1)
	if err := codes.Reset(ctx, "ann"); err != nil {
		fmt.Println(err)
		return
	}
	after, _ := codes.Peek(ctx, "ann", 1)
	fmt.Println(before.Allowed, after.Allowed, after.Remaining)
	// Output: false true 3
}

// Plans are limits on the same keys: who changes the plan keeps what was spent.
func ExampleLimiter_With() {
	plan := func(perMinute int64) sluice.Strategy {
		return sluice.Must(fixedwindow.New(sluice.Limit{Count: perMinute, Period: time.Minute}))
	}
	free := sluice.New(local.New(local.Options{Clock: noon}), plan(10), "api")
	paid := free.With(plan(100))
	ctx := context.Background()
	for _, l := range []*sluice.Limiter{free, free, paid} {
		d, err := l.AllowN(ctx, "acme", 6)
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := d.Hold(ctx); err != nil {
			return
		}
		fmt.Println(d.Allowed, d.Remaining, "of", d.Limit)
	}
	// Output:
	// true 4 of 10
	// false 4 of 10
	// true 88 of 100
}

// Two limits on one request: for each address, and for all together. It is charged to both or to none.
func ExampleTakeAll() {
	store := local.New(local.Options{Clock: noon})
	each := sluice.New(store, sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Second, Burst: 2})), "login/each")
	all := sluice.New(store, sluice.Must(fixedwindow.New(sluice.Limit{Count: 3, Period: time.Minute})), "login/all")
	ctx := context.Background()
	for _, address := range []string{"203.0.113.7", "203.0.113.7", "203.0.113.7", "203.0.113.8", "203.0.113.9"} {
		v, err := sluice.TakeAll(ctx, store, []sluice.Ask{each.Ask(address, 1), all.Ask("", 1)})
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := v.Hold(ctx); err != nil {
			return
		}
		fmt.Println(v.Allowed, v.Refused, v.Remaining, v.RetryAfter)
	}
	// Output:
	// true -1 1 0s
	// true -1 0 0s
	// false 0 0 1s
	// true -1 0 0s
	// false 1 0 1m0s
}

// An observer is told of each decision: for metrics and logs.
func ExampleObserve() {
	limit := sluice.Limit{Count: 2, Period: time.Minute}
	store := sluice.Observe(local.New(local.Options{Clock: noon}), sluice.ObserverFunc(
		func(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
			fmt.Println(a.Mode, a.Key.Rule, a.N, d.Allowed, d.Source, err)
		}))
	api := sluice.New(store, sluice.Must(fixedwindow.New(limit)), "api")
	ctx := context.Background()
	for _, n := range []int64{2, 1} {
		d, err := api.AllowN(ctx, "acme", n)
		if err != nil || d.Hold(ctx) != nil {
			return
		}
	}
	if _, err := api.Peek(ctx, "acme", 0); err != nil {
		return
	}
	// Output:
	// charge api 2 true local <nil>
	// charge api 1 false local <nil>
	// peek api 0 true local <nil>
}

func ExampleParseLimit() {
	for _, text := range []string{"100/10s", "5/min", "1000/h", "5 per minute"} {
		l, err := sluice.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(l.Count, l.Period)
	}
	// Output:
	// 100 10s
	// 5 1m0s
	// 1000 1h0m0s
	// algorithm: limit "5 per minute": want count/period, such as "100/10s"
}

// Must is for limits that are constants of the program: a wrong one stops it at its start.
func ExampleMust() {
	defer func() { fmt.Println(recover()) }()
	fmt.Println(sluice.Must(sluice.ParseLimit("100/10s")))
	fmt.Println(sluice.Must(fixedwindow.New(sluice.Limit{Count: 0, Period: time.Second})))
	// Output:
	// 100/10s
	// fixedwindow: Count 0: want at least 1
}

// A leaky bucket lets requests pass evenly spaced: each is held for its Delay.
func ExampleLimiter_Allow_leaky() {
	limit := sluice.Limit{Count: 1000, Period: time.Second, Burst: 3}
	printer := sluice.New(local.New(local.Options{Clock: noon}), sluice.Must(leaky.New(limit)), "printer")
	ctx := context.Background()
	for range 4 {
		d, err := printer.Allow(ctx, "")
		if err != nil {
			fmt.Println(err)
			return
		}
		if !d.Allowed {
			fmt.Println("the queue is full, retry after", d.RetryAfter)
			continue
		}
		start := time.Now()
		if err := d.Hold(ctx); err != nil {
			return
		}
		fmt.Println("held for", d.Delay, time.Since(start) >= d.Delay)
	}
	// Output:
	// held for 0s true
	// held for 1ms true
	// held for 2ms true
	// the queue is full, retry after 1ms
}
