package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
)

func settling(t testing.TB) *policy.Rules {
	return newRules(t, policy.RuleConfig{
		Name: "r", Match: "/", Cost: policy.CostConfig{Default: 5, Max: 20}, Settle: "response:X-Actual-Cost",
		Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip")},
	})
}

// saying is how a handler says what a call cost: by the functions of package grpc, or by its stream's own.
type saying struct{ header, send, trailer func(metadata.MD) error }

func byContext(ctx context.Context) saying {
	return saying{
		func(md metadata.MD) error { return grpc.SetHeader(ctx, md) },
		func(md metadata.MD) error { return grpc.SendHeader(ctx, md) },
		func(md metadata.MD) error { return grpc.SetTrailer(ctx, md) },
	}
}

func byStream(ss grpc.ServerStream) saying {
	return saying{ss.SetHeader, ss.SendHeader, func(md metadata.MD) error { ss.SetTrailer(md); return nil }}
}

// A call costs what its handler says at last, however it ends.
func TestSettle(t *testing.T) {
	cost := func(n ...string) metadata.MD { return metadata.MD{"x-actual-cost": n} }
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		handler func(saying) error
		settled string
	}{
		"silent":             {func(saying) error { return nil }, "[]"},
		"trailer":            {func(s saying) error { return s.trailer(cost("2")) }, "[-3]"},
		"more":               {func(s saying) error { return s.trailer(cost("17")) }, "[12]"},
		"above max":          {func(s saying) error { return s.trailer(cost("1000000000000000000000")) }, "[15]"},
		"nothing":            {func(s saying) error { return s.trailer(cost("0")) }, "[-5]"},
		"the same":           {func(s saying) error { return s.trailer(cost("5")) }, "[]"},
		"no number":          {func(s saying) error { return s.trailer(cost("1e1")) }, "[]"},
		"negative":           {func(s saying) error { return s.trailer(cost("-100")) }, "[]"},
		"twice":              {func(s saying) error { return s.trailer(cost("1", "1")) }, "[]"},
		"in two":             {func(s saying) error { return errors.Join(s.trailer(cost("1")), s.trailer(cost("1"))) }, "[]"},
		"another key":        {func(s saying) error { return s.trailer(metadata.Pairs("x-actual-costs", "2")) }, "[]"},
		"header":             {func(s saying) error { return s.header(cost("2")) }, "[-3]"},
		"sent header":        {func(s saying) error { return s.send(cost("2")) }, "[-3]"},
		"header and trailer": {func(s saying) error { return errors.Join(s.header(cost("2")), s.trailer(cost("9"))) }, "[4]"},
		"a header too late": {func(s saying) error {
			err := s.send(nil)
			_ = s.header(cost("2")) // an error, and said all the same
			return err
		}, "[-3]"},
		"fails":  {func(s saying) error { return errors.Join(s.trailer(cost("2")), broken) }, "[-3]"},
		"panics": {func(s saying) error { _ = s.trailer(cost("2")); panic("broken") }, "[-3]"},
	} {
		for by, send := range map[string]func(context.Context, testpb.TestServiceClient, ...grpc.CallOption) error{
			"unary": call, "stream": output, "stream's context": output,
		} {
			t.Run(name+"/"+by, func(t *testing.T) {
				svc := &handlers{
					unary: func(ctx context.Context) error { return tt.handler(byContext(ctx)) },
					stream: func(ss grpc.ServerStream) error {
						if by == "stream" {
							return tt.handler(byStream(ss))
						}
						return tt.handler(byContext(ss.Context()))
					},
				}
				store := &ledger{Store: newStore(newClock())}
				client := guarded(t, settling(t), store, svc)
				err := send(from(t, "192.0.2.1:1"), client)
				switch name {
				case "fails":
					wantCode(t, err, codes.Unknown)
				case "panics":
					wantCode(t, err, codes.Internal)
				default:
					wantCode(t, err, codes.OK)
				}
				if got := fmt.Sprint(store.of("r", sluice.Settle)); got != tt.settled {
					t.Errorf("settled %s, want %s", got, tt.settled)
				}
				if got := fmt.Sprint(store.of("r", sluice.Charge)); got != "[5]" {
					t.Errorf("charged %s, want [5]", got)
				}
			})
		}
	}
}

// What was charged to nobody, in an outage, is not settled; and each rule is settled by its own charge, wherever it stands.
func TestSettleWhatWasCharged(t *testing.T) {
	says := &handlers{unary: func(ctx context.Context) error {
		return grpc.SetTrailer(ctx, metadata.Pairs("x-actual-cost", "7"))
	}}
	rules := newRules(t,
		policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip")}},
		policy.RuleConfig{
			Name: "all", Match: "always", Cost: policy.CostConfig{Default: 5, Max: 20}, Settle: "response:X-Actual-Cost",
			Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip")},
		})
	for name, tt := range map[string]struct {
		store   sluice.Store
		settled string
	}{"kept": {newStore(newClock()), "[2]"}, "assumed": {failover.AllowAll{}, "[]"}} {
		t.Run(name, func(t *testing.T) {
			store := &ledger{Store: tt.store}
			wantCode(t, call(from(t, "192.0.2.1:1"), guarded(t, rules, store, says)), codes.OK)
			if got := fmt.Sprint(store.of("all", sluice.Settle), store.of("r", sluice.Settle)); got != tt.settled+" []" {
				t.Errorf("settled %s, want %s for the rule that settles alone", got, tt.settled)
			}
		})
	}
}

// Each limit of the rule is settled, the shadow too; those of a rule without settle are left alone. The client still
// gets what the handler set.
func TestSettleEachLimit(t *testing.T) {
	shadow := limit(t, "fixed_window", "50/h", "ip")
	shadow.Shadow, shadow.Name = true, "next"
	rules := newRules(t,
		policy.RuleConfig{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip")}},
		policy.RuleConfig{
			Name: "r", Match: "/", Cost: policy.CostConfig{Default: 5, Max: 20}, Settle: "response:X-Actual-Cost",
			Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip"), limit(t, "token_bucket", "100/h", "global"), shadow},
		})
	store := &ledger{Store: newStore(newClock())}
	client := guarded(t, rules, store, &handlers{unary: func(ctx context.Context) error {
		return errors.Join(grpc.SetHeader(ctx, metadata.Pairs("own", "1")), grpc.SetTrailer(ctx, metadata.Pairs("x-actual-cost", "7")))
	}})
	var header, trailer metadata.MD
	wantCode(t, call(from(t, "192.0.2.1:1"), client, grpc.Header(&header), grpc.Trailer(&trailer)), codes.OK)
	for rule, want := range map[string]string{"all": "[]", "r/fixed_window-ip": "[2]", "r/token_bucket-global": "[2]", "r/next": "[2]"} {
		if got := fmt.Sprint(store.of(rule, sluice.Settle)); got != want {
			t.Errorf("%s settled %s, want %s", rule, got, want)
		}
	}
	if fmt.Sprint(header.Get("own"), trailer.Get("x-actual-cost")) != "[1] [7]" {
		t.Errorf("the client gets %v and %v", header, trailer)
	}
}

// A call whose client has left is settled all the same.
func TestSettleAfterTheClient(t *testing.T) {
	store := &ledger{Store: newStore(newClock())}
	left, done := make(chan struct{}), make(chan struct{})
	client := guarded(t, settling(t), store, &handlers{unary: func(ctx context.Context) error {
		defer close(done)
		close(left)
		<-ctx.Done()
		_ = grpc.SetTrailer(ctx, metadata.Pairs("x-actual-cost", "9")) // an error: nobody is there to get it
		return ctx.Err()
	}})
	ctx, cancel := context.WithCancel(from(t, "192.0.2.1:1"))
	go func() { <-left; cancel() }()
	wantCode(t, call(ctx, client), codes.Canceled)
	<-done
	ctx = from(t, "192.0.2.1:1")
	for fmt.Sprint(store.of("r", sluice.Settle)) != "[4]" {
		select {
		case <-ctx.Done():
			t.Fatalf("settled %v, want [4]", store.of("r", sluice.Settle))
		case <-time.After(time.Millisecond):
		}
	}
}

// A settlement that fails leaves the call as it was.
func TestSettleFails(t *testing.T) {
	store := newStore(newClock())
	failing := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		if a.Mode == sluice.Settle {
			return sluice.Decision{}, sluice.ErrUnavailable
		}
		return store.Take(ctx, a)
	})
	client := guarded(t, settling(t), failing, &handlers{unary: func(ctx context.Context) error {
		return grpc.SetTrailer(ctx, metadata.Pairs("x-actual-cost", "9"))
	}})
	wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)
}
