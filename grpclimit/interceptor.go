package grpclimit

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/charging"
	"github.com/sluice-go/sluice/policy"
)

// Options are what an [Interceptor] is made of.
type Options struct {
	// Rules say which calls are limited, and how. Nil: none is.
	Rules *policy.Rules

	// Stores has a store for each on_outage that Rules use: around one shared store, usually, what that on_outage
	// says to do while it is away. A rule whose on_outage has no store here is answered as one whose store failed.
	Stores map[policy.OnOutage]sluice.Store

	// Current, if set, is asked for each call in place of Rules and Stores: Current of package service, for interceptors
	// that follow edits of a rule file, overrides in Redis and the mode. It is called from many goroutines, and what it
	// returns must not change.
	Current func() (*policy.Rules, map[policy.OnOutage]sluice.Store)

	// OnError is told of each error of a store, whose call was answered with UNAVAILABLE, or passed in shadow mode, but
	// not of calls that were cancelled, or whose own deadline was over. method is /package.Service/Method. It is called from many goroutines. Nil: nobody
	// is told.
	OnError func(ctx context.Context, method string, err error)
}

// Interceptor applies a set of rules to the calls of a server. It is immutable and safe for concurrent use.
type Interceptor struct{ o Options }

// New returns an interceptor for o.
func New(o Options) *Interceptor {
	if o.Current == nil {
		rules, stores := o.Rules, o.Stores
		o.Current = func() (*policy.Rules, map[policy.OnOutage]sluice.Store) { return rules, stores }
	}
	return &Interceptor{o}
}

// UnaryServerInterceptor returns the interceptor of unary calls, for grpc.ChainUnaryInterceptor. It decides a call,
// calls its handler if it may go on, and settles what it cost once the handler has returned, or panicked.
//
// All limits of all rules that hold are taken with one [sluice.TakeAll]: all are charged, or none is. Where those
// rules differ in on_outage, the store of the strictest decides them all: deny before local before allow. A call that
// no rule matches passes uncounted, as does one that a rule exempts, for that rule. A call that any of the rules denies
// is refused before anything is charged.
//
// Shadow limits are taken one by one, once the call is known to pass, and before it is held. Their answers, and errors,
// are for the store's observer alone. In shadow mode that holds for all: nothing is refused, held, or told to the
// client.
//
// A client who leaves, or whose deadline ends, while the store is asked or while it is held may have been charged, and the
// handler does not run: giving back would let those who come later act at times that others were promised.
func (i *Interceptor) UnaryServerInterceptor() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c, err := i.enter(ctx, info.FullMethod)
		if err != nil {
			return nil, err
		}
		if c.Any() {
			var said *said
			ctx, said = listen(ctx, c.Headers())
			defer func() { _ = c.Settle(ctx, said.header()) }() // an error leaves the estimate: the safe side
		}
		return handler(ctx, req)
	}
}

// StreamServerInterceptor returns the interceptor of streams, for grpc.ChainStreamInterceptor. It does for a stream,
// when that begins and when it ends, what [Interceptor.UnaryServerInterceptor] does for a call.
func (i *Interceptor) StreamServerInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		c, err := i.enter(ss.Context(), info.FullMethod)
		if err != nil {
			return err
		}
		if c.Any() {
			ctx, said := listen(ss.Context(), c.Headers())
			ss = &stream{ServerStream: ss, ctx: ctx, said: said}
			defer func() { _ = c.Settle(ctx, said.header()) }() // an error leaves the estimate: the safe side
		}
		return handler(srv, ss)
	}
}

// enter decides a call. The error is the status to answer with; nil: the call may go on, has been held, and its charges
// are to be settled, if there are any.
func (i *Interceptor) enter(ctx context.Context, method string) (none charging.Charges, _ error) {
	rules, stores := i.o.Current()
	if rules == nil {
		return none, nil
	}
	shadow := rules.Mode() == policy.ModeShadow // nothing is refused, held, or told to the client
	r := request(ctx, method)
	matched := rules.Match(r)
	if len(matched) == 0 {
		return none, nil
	}
	r.Header = header(ctx)
	var few [8]charging.Part // stays on the stack
	call, denied := charging.Call(few[:0]).Add(matched, r)
	if denied != nil && !shadow {
		return none, forbidden(denied)
	}
	if len(call) == 0 {
		return none, nil
	}
	store, err := call.Store(stores)
	if err != nil {
		return none, i.failed(ctx, method, shadow, fmt.Errorf("grpclimit: %w", err))
	}
	taken, err := call.Take(ctx, store)
	if err != nil {
		return none, i.failed(ctx, method, shadow, err)
	}
	if ctx.Err() != nil && !shadow { // a fallback decides all the same; nobody waits for the handler
		return none, left(ctx.Err())
	}
	if !taken.Allowed {
		if shadow {
			return none, nil
		}
		return none, i.refuse(ctx, call, &taken)
	}
	charges := call.Pass(ctx, store, &taken)
	if !shadow {
		if err := taken.Hold(ctx); err != nil {
			return none, left(err)
		}
	}
	return charges, nil
}

// failed answers for a store that could not decide; nil: the call may go on all the same.
func (i *Interceptor) failed(ctx context.Context, method string, shadow bool, err error) error {
	if i.o.OnError != nil && ctx.Err() == nil {
		i.o.OnError(ctx, method, err)
	}
	if shadow {
		return nil
	}
	return undecided(ctx)
}

// refuse answers a call that a limit refused.
func (i *Interceptor) refuse(ctx context.Context, call charging.Call, taken *charging.Taken) error {
	refused := taken.Binding()
	part, limit := call.Limit(refused)
	return refusal{
		ask:     taken.Asks[refused],
		subject: limit.SubjectName,
		message: ownMessage(call[part].Rule.Denial),
		wait:    taken.RetryAfter,
	}.send(ctx)
}
