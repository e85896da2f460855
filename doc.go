// Package sluice limits rates for services that share one budget across many processes.
//
// A [Limiter] asks a [Store] whether a subject may pass; the store keeps three integers a key and runs a [Strategy]
// on them atomically. Pick a strategy for each endpoint (algorithm/tokenbucket first; fixedwindow, slidingwindow,
// leaky), and a store: store/local in one process, store/redis for all processes together, in one round trip.
//
//	limit := sluice.Limit{Count: 5, Period: time.Minute, Burst: 10}
//	login := sluice.New(local.New(local.Options{}), sluice.Must(tokenbucket.New(limit)), "login")
//	d, err := login.Allow(ctx, subject)
//
// A denial is a [Decision], not an error; an error means that the store could not decide. What to do then is the
// caller's choice, or a store's around the store.
//
// Which method: [Limiter.Allow] for a request that is served or refused now; [Limiter.Wait] for work that may be late;
// [Limiter.Reserve] where the cost is known only afterwards; [TakeAll] for several limits on one request, all or none.
// None of them is a lock: a decision says that the request was within the limit at the time it was charged.
package sluice
