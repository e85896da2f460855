package grpclimit_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// Rules see a call as the request that carries it.
func TestRulesMatchCalls(t *testing.T) {
	const addr = "192.0.2.1:1"
	once := func(match, subject string) policy.RuleConfig {
		return policy.RuleConfig{Name: "r", Match: match, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", subject)}}
	}
	type calls = []context.Context
	for name, tt := range map[string]struct {
		rule   policy.RuleConfig
		first  context.Context
		passes calls // after the first
		shut   calls
	}{
		"method":         {once("POST "+unaryMethod, "ip"), from(t, addr), calls{from(t, "192.0.2.2:1")}, calls{from(t, addr)}},
		"service":        {once("/grpc.testing.TestService/", "ip"), from(t, addr), nil, calls{from(t, addr)}},
		"everything":     {once("/", "global"), from(t, addr), nil, calls{from(t, "192.0.2.2:1")}},
		"always":         {once("always", "global"), from(t, addr), nil, calls{from(t, "192.0.2.2:1")}},
		"host":           {once("api.example/", "global"), from(t, addr), nil, calls{from(t, addr)}},
		"another method": {once("POST "+outputMethod, "ip"), from(t, addr), calls{from(t, addr)}, nil},
		"another host":   {once("other.example/", "global"), from(t, addr), calls{from(t, addr)}, nil},
		"GET":            {once("GET /", "ip"), from(t, addr), calls{from(t, addr)}, nil},
		"wildcard":       {once("POST /grpc.testing.TestService/{method}", "path:method"), from(t, addr), nil, calls{from(t, "192.0.2.2:1")}},
		"metadata":       {once("/", "header:X-API-Key"), from(t, addr, "x-api-key", "a"), calls{from(t, addr, "x-api-key", "b")}, calls{from(t, "192.0.2.2:1", "X-Api-Key", "a")}},
		"authorization":  {once("/", "header:Authorization"), from(t, addr, "authorization", "Bearer a"), calls{from(t, addr, "authorization", "Bearer b")}, calls{from(t, "192.0.2.2:1", "authorization", "bearer  a")}},
		"absent":         {once("/", "header:X-API-Key"), from(t, addr), calls{from(t, "192.0.2.2:1")}, calls{from(t, addr)}},
		"host as header": {once("/", "header:Host"), from(t, addr), nil, calls{from(t, "192.0.2.2:1")}},
		"forwarded":      {once("/", "ip"), from(t, "10.0.0.1:1", "x-forwarded-for", "192.0.2.7"), calls{from(t, "10.0.0.1:1", "x-forwarded-for", "192.0.2.8")}, calls{from(t, "192.0.2.7:9")}},
		"a stranger's":   {once("/", "ip"), from(t, addr, "x-forwarded-for", "192.0.2.7"), nil, calls{from(t, addr, "x-forwarded-for", "192.0.2.8")}},
		"IPv6":           {once("/", "ip"), from(t, "[2001:db8::1]:1"), calls{from(t, "[2001:db8:0:1::1]:1")}, calls{from(t, "[2001:db8::2]:1")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := policy.Config{Rules: []policy.RuleConfig{tt.rule}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
			client := guarded(t, compiled(t, c), newStore(newClock()), &handlers{})
			wantCode(t, call(tt.first, client), codes.OK)
			for _, ctx := range tt.passes {
				wantCode(t, call(ctx, client), codes.OK)
			}
			for _, ctx := range tt.shut {
				wantCode(t, call(ctx, client), codes.ResourceExhausted)
			}
		})
	}
}

// One rule file serves HTTP and gRPC on the same keys, those of binary metadata too.
func TestKeysAreThoseOfHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		subject, key, grpc, http string
	}{
		"ip":     {"ip", "x", "y", "y"},
		"text":   {"header:X-API-Key", "x-api-key", "k", "k"},
		"binary": {"header:Trace-Bin", "trace-bin", "\x00\xff\x01\x02", base64.RawStdEncoding.EncodeToString([]byte("\x00\xff\x01\x02"))},
	} {
		t.Run(name, func(t *testing.T) {
			rules := newRules(t, policy.RuleConfig{Name: "r", Match: "POST " + unaryMethod, Limits: []policy.LimitConfig{limit(t, "fixed_window", "2/h", tt.subject)}})
			store := newStore(newClock())
			client := guarded(t, rules, store, &handlers{})
			web := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(store)}).Wrap(http.NotFoundHandler())
			wantCode(t, call(from(t, "192.0.2.1:1", tt.key, tt.grpc), client), codes.OK)
			for _, want := range []int{404, 429} {
				r := httptest.NewRequest("POST", unaryMethod, nil)
				r.RemoteAddr = "192.0.2.1:7"
				r.Header.Set(tt.key, tt.http)
				w := httptest.NewRecorder()
				if web.ServeHTTP(w, r); w.Code != want {
					t.Errorf("HTTP %d, want %d", w.Code, want)
				}
			}
			wantCode(t, call(from(t, "192.0.2.1:1", tt.key, tt.grpc), client), codes.ResourceExhausted)
			if store.Len() != 1 {
				t.Errorf("%d keys, want 1", store.Len())
			}
		})
	}
}

// What holds together is charged together, and the refusal names the limit that refused.
func TestRefusalOfRules(t *testing.T) {
	rules := newRules(t,
		policy.RuleConfig{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "2/min", "global")}},
		policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{
			{Algorithm: "fixed_window", Limit: sluice.Limit{Count: 1, Period: time.Hour}, Subject: "global", Shadow: true, Name: "next"},
			limit(t, "fixed_window", "100/h", "global"),
			limit(t, "token_bucket", "5/min", "ip", 1),
		}},
	)
	client := guarded(t, rules, newStore(newClock()), &handlers{})
	wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)

	err := output(from(t, "192.0.2.1:1"), client) // refused by the bucket: the window keeps one
	retry, quota := details(err)
	wantCode(t, err, codes.ResourceExhausted)
	if got := retry.GetRetryDelay().AsDuration(); got != 12*time.Second {
		t.Errorf("retry after %v, want 12s", got)
	}
	v := quota.GetViolations()
	if len(v) != 1 || v[0].QuotaId != "r/token_bucket-ip" || v[0].Subject != "ip" || v[0].QuotaValue != 5 {
		t.Errorf("violations %v, want r/token_bucket-ip of ip, 5", v)
	}
	if strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("%v: names the client's address", err)
	}

	wantCode(t, call(from(t, "192.0.2.2:1"), client), codes.OK)
	err = call(from(t, "192.0.2.3:1"), client)
	_, quota = details(err)
	wantCode(t, err, codes.ResourceExhausted)
	if v := quota.GetViolations(); len(v) != 1 || v[0].QuotaId != "all" || v[0].Subject != "global" {
		t.Errorf("violations %v, want all of global", v)
	}
}

// Where no wait helps, nothing asks for one.
func TestNever(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{
		Name: "r", Match: "/", Cost: policy.CostConfig{Default: 3},
		Limits: []policy.LimitConfig{limit(t, "token_bucket", "5/min", "ip", 2)},
	})
	client := guarded(t, rules, newStore(newClock()), &handlers{})
	var trailer metadata.MD
	err := call(from(t, "192.0.2.1:1"), client, grpc.Trailer(&trailer))
	wantCode(t, err, codes.ResourceExhausted)
	retry, quota := details(err)
	if retry != nil || len(quota.GetViolations()) != 1 {
		t.Errorf("%v, %v: want a violation and no RetryInfo", retry, quota)
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != "-1" {
		t.Errorf("pushback %v, want -1", got)
	}
}

// A call's cost is what a trusted proxy says.
func TestCost(t *testing.T) {
	rules := compiled(t, policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Rules: []policy.RuleConfig{{
			Name: "r", Match: "/", Cost: policy.CostConfig{Header: "X-Cost", Default: 1, Min: 1, Max: 10},
			Limits: []policy.LimitConfig{limit(t, "fixed_window", "10/h", "global")},
		}},
	})
	client := guarded(t, rules, newStore(newClock()), &handlers{})
	wantCode(t, call(from(t, "10.0.0.1:1", "x-cost", "8"), client), codes.OK)
	wantCode(t, call(from(t, "10.0.0.1:1", "x-cost", "8"), client), codes.ResourceExhausted)
	wantCode(t, call(from(t, "192.0.2.1:1", "x-cost", "8"), client), codes.OK) // costs 1
	wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)
	wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.ResourceExhausted)
}

// A rule's lists and texts hold for calls too.
func TestStandingAndTexts(t *testing.T) {
	rule := policy.RuleConfig{
		Name: "r", Match: "/", Deny: []string{"198.51.100.0/24", "header:X-Key=bad"}, Exempt: []string{"192.0.2.7"},
		Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "global")},
	}
	for name, tt := range map[string]struct {
		denial             policy.Denial
		refused, forbidden string
	}{
		"none":        {policy.Denial{}, "rate limit exceeded: r", "call not permitted"},
		"text":        {policy.Denial{Body: "später, bitte"}, "später, bitte", "später, bitte"},
		"typed":       {policy.Denial{Status: 418, Type: "TEXT/plain; charset=utf-8", Body: "later"}, "later", "later"},
		"JSON":        {policy.Denial{Type: "application/json", Body: "{}"}, "rate limit exceeded: r", "call not permitted"},
		"long":        {policy.Denial{Body: strings.Repeat("x", 2000)}, "rate limit exceeded: r", "call not permitted"},
		"not unicode": {policy.Denial{Body: "a\xffb"}, "a\uFFFDb", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			rule.Denial = tt.denial
			svc, store := &handlers{}, newStore(newClock())
			client := guarded(t, newRules(t, rule), store, svc)
			for _, ctx := range []context.Context{from(t, "198.51.100.9:1"), from(t, "192.0.2.1:1", "x-key", "bad"), from(t, "192.0.2.7:1", "x-key", "bad")} {
				for _, err := range []error{call(ctx, client), output(ctx, client)} {
					wantCode(t, err, codes.PermissionDenied)
					if got := status.Convert(err); got.Message() != tt.forbidden || len(got.Details()) != 0 {
						t.Errorf("%q and %v, want %q alone", got.Message(), got.Details(), tt.forbidden)
					}
				}
			}
			if svc.calls.Load() != 0 || store.Len() != 0 {
				t.Errorf("%d calls, %d keys, want none", svc.calls.Load(), store.Len())
			}
			for range 3 {
				wantCode(t, call(from(t, "192.0.2.7:1"), client), codes.OK)
			}
			wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)
			err := call(from(t, "192.0.2.1:1"), client)
			wantCode(t, err, codes.ResourceExhausted)
			if got := status.Convert(err); got.Message() != tt.refused || len(got.Details()) != 2 {
				t.Errorf("message %q and %v, want %q and two details", got.Message(), got.Details(), tt.refused)
			}
		})
	}
}

// An override gives one subject another limit on the same key.
func TestOverride(t *testing.T) {
	l := limit(t, "fixed_window", "1/h", "header:X-API-Key")
	l.Overrides = []policy.OverrideConfig{{Subject: "acme", Limit: sluice.Limit{Count: 3, Period: time.Hour}}}
	client := guarded(t, newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{l}}), newStore(newClock()), &handlers{})
	for range 3 {
		wantCode(t, call(with(t, "x-api-key", "acme"), client), codes.OK)
	}
	err := call(with(t, "x-api-key", "acme"), client)
	wantCode(t, err, codes.ResourceExhausted)
	if _, quota := details(err); len(quota.GetViolations()) != 1 || quota.Violations[0].QuotaValue != 3 {
		t.Errorf("violations %v, want the override's 3", quota)
	}
	wantCode(t, call(with(t, "x-api-key", "b"), client), codes.OK)
	wantCode(t, call(with(t, "x-api-key", "b"), client), codes.ResourceExhausted)
}

// ledger is a store that keeps a list of what it was asked.
type ledger struct {
	sluice.Store
	mu   sync.Mutex
	asks []sluice.Ask
}

func (l *ledger) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if err := ctx.Err(); err != nil { // as a store on a network would
		return sluice.Decision{}, err
	}
	l.mu.Lock()
	l.asks = append(l.asks, a)
	l.mu.Unlock()
	return l.Store.Take(ctx, a)
}

// of are the units of a key's rule that were asked for in a mode, in order.
func (l *ledger) of(rule string, mode sluice.Mode) (n []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asks {
		if a.Mode == mode && a.Key.Rule == rule {
			n = append(n, a.N)
		}
	}
	return n
}

// Shadows refuse nothing, hold nobody, and are asked only about calls that pass.
func TestShadows(t *testing.T) {
	shadow := limit(t, "leaky_bucket", "1/h", "ip", 5)
	shadow.Shadow, shadow.Name = true, "next"
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "2/h", "ip"), shadow}})
	store := &ledger{Store: newStore(newClock())}
	client := guarded(t, rules, store, &handlers{})
	for range 2 {
		wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK) // the second would be held for an hour
	}
	wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.ResourceExhausted)
	if n := store.of("r/next", sluice.Charge); len(n) != 2 {
		t.Errorf("the shadow was asked %d times, want 2", len(n))
	}
}

// In shadow mode every call passes, whatever is decided, and whatever fails.
func TestShadowMode(t *testing.T) {
	rules := compiled(t, policy.Config{Mode: policy.ModeShadow, Rules: []policy.RuleConfig{
		{Name: "r", Match: "/", Deny: []string{"192.0.2.7"}, Limits: []policy.LimitConfig{limit(t, "leaky_bucket", "1/h", "ip", 2)}},
	}})
	store := &ledger{Store: newStore(newClock())}
	client := guarded(t, rules, store, &handlers{})
	for range 4 { // allowed; held; refused; refused
		wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)
	}
	wantCode(t, output(from(t, "192.0.2.7:1"), client), codes.OK)
	if n := store.of("r", sluice.Charge); len(n) != 4 {
		t.Errorf("asked %d times, want 4", len(n))
	}
	failing := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	wantCode(t, call(from(t, "192.0.2.1:1"), guarded(t, rules, failing, &handlers{})), codes.OK)
}

// In off mode, and without rules, nothing is asked.
func TestNothingToDecide(t *testing.T) {
	failing := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	off := compiled(t, policy.Config{Mode: policy.ModeOff, Rules: []policy.RuleConfig{
		{Name: "r", Match: "/", Deny: []string{"0.0.0.0/0"}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "ip")}},
	}})
	for _, rules := range []*policy.Rules{nil, off} {
		client := guarded(t, rules, failing, &handlers{})
		wantCode(t, call(from(t, "192.0.2.1:1"), client), codes.OK)
		wantCode(t, output(from(t, "192.0.2.1:1"), client), codes.OK)
	}
}

// A store's error, and a store that is missing, are UNAVAILABLE, and OnError hears of both; the strictest on_outage of
// what holds decides.
func TestStoreErrors(t *testing.T) {
	rules := newRules(t,
		policy.RuleConfig{Name: "all", Match: "always", OnOutage: policy.Allow, Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")}},
		policy.RuleConfig{Name: "r", Match: unaryMethod, OnOutage: policy.Deny, Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")}},
		policy.RuleConfig{Name: "s", Match: outputMethod, OnOutage: policy.Local, Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")}},
	)
	cause := errors.New("redis://:password@host")
	var mu sync.Mutex
	heard := map[string]error{}
	i := grpclimit.New(grpclimit.Options{
		Rules: rules,
		Stores: map[policy.OnOutage]sluice.Store{
			policy.Allow: failover.AllowAll{},
			policy.Deny:  sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) { return sluice.Decision{}, cause }),
		},
		OnError: func(_ context.Context, method string, err error) {
			mu.Lock()
			defer mu.Unlock()
			heard[method] = err
		},
	})
	svc := &handlers{}
	client := serve(t, svc, i.UnaryServerInterceptor(), i.StreamServerInterceptor())
	for _, err := range []error{call(with(t), client), output(with(t), client)} {
		wantCode(t, err, codes.Unavailable)
		if strings.Contains(err.Error(), "password") {
			t.Errorf("%v: want no cause", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if err := heard[unaryMethod]; !errors.Is(err, cause) {
		t.Errorf("heard %v, want the cause", err)
	}
	if err := heard[outputMethod]; err == nil || !strings.Contains(err.Error(), "no store for on_outage local") {
		t.Errorf("heard %v, want that the store is missing", err)
	}
	if svc.calls.Load() != 0 {
		t.Errorf("%d calls reached the handler, want none", svc.calls.Load())
	}
	stream, err := client.FullDuplexCall(with(t)) // only "all" holds, and lets pass
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&testpb.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Error(err)
	}
}

// Of rules that hold together the strictest on_outage decides, in whatever order they stand.
func TestStrictestDecides(t *testing.T) {
	rule := func(name, match string, o policy.OnOutage) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: match, OnOutage: o, Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")}}
	}
	for _, o := range [][2]policy.OnOutage{{policy.Allow, policy.Deny}, {policy.Deny, policy.Allow}} {
		i := grpclimit.New(grpclimit.Options{
			Rules:  newRules(t, rule("r", "/", o[0]), rule("all", "always", o[1])),
			Stores: map[policy.OnOutage]sluice.Store{policy.Allow: failover.AllowAll{}, policy.Deny: failover.DenyAll{}},
		})
		client := serve(t, &handlers{}, i.UnaryServerInterceptor(), i.StreamServerInterceptor())
		err := call(with(t), client)
		wantCode(t, err, codes.ResourceExhausted)
		if retry, _ := details(err); retry.GetRetryDelay().AsDuration() != time.Second {
			t.Errorf("retry %v, want 1s", retry)
		}
	}
}

// A client who leaves while the store is asked gets the status for that, and OnError is not told of it.
func TestClientLeaves(t *testing.T) {
	asked := make(chan struct{}, 1)
	hanging := sluice.StoreFunc(func(ctx context.Context, _ sluice.Ask) (sluice.Decision, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return sluice.Decision{}, ctx.Err()
	})
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")}})
	answered := make(chan error, 1)
	i := grpclimit.New(grpclimit.Options{Rules: rules, Stores: everywhere(hanging), OnError: func(context.Context, string, error) { t.Error("OnError is told") }})
	inner := i.UnaryServerInterceptor()
	client := serve(t, &handlers{}, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		res, err := inner(ctx, req, info, handler)
		answered <- err
		return res, err
	}, i.StreamServerInterceptor())
	ctx, cancel := context.WithCancel(with(t))
	go func() { <-asked; cancel() }()
	wantCode(t, call(ctx, client), codes.Canceled)
	wantCode(t, <-answered, codes.Canceled)
}

// A call whose deadline is over has no use of a handler: neither where a store in process refuses to decide so late, nor
// where a fallback decides all the same. Nobody is told of it as of a fault.
func TestDeadlineIsOver(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")}})
	late := sluice.StoreFunc(func(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
		<-ctx.Done()
		return newStore(newClock()).Take(context.WithoutCancel(ctx), a)
	})
	for name, store := range map[string]sluice.Store{"in process": newStore(newClock()), "a fallback": late} {
		t.Run(name, func(t *testing.T) {
			i := grpclimit.New(grpclimit.Options{Rules: rules, Stores: everywhere(store), OnError: func(_ context.Context, _ string, err error) { t.Errorf("OnError is told %v", err) }})
			one := sluice.New(store, sluice.Must(fixedwindow.New(sluice.Limit{Count: 9, Period: time.Hour})), "one")
			for _, interceptor := range []grpc.UnaryServerInterceptor{i.UnaryServerInterceptor(), grpclimit.Unary(one, policy.IP())} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				defer cancel()
				<-ctx.Done()
				_, err := interceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod}, func(context.Context, any) (any, error) {
					t.Error("the handler runs")
					return nil, nil
				})
				wantCode(t, err, codes.DeadlineExceeded)
			}
		})
	}
}

// A rule named in code may have any bytes; its refusals are whole.
func TestRefusalOfAnOddName(t *testing.T) {
	store := newStore(newClock())
	one := grpclimit.Unary(sluice.New(store, sluice.Must(fixedwindow.New(sluice.Limit{Count: 1, Period: time.Hour})), "r\xff"), policy.IP())
	for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		_, err := one(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod}, func(context.Context, any) (any, error) { return nil, nil })
		wantCode(t, err, want)
		if retry, quota := details(err); err != nil && (retry == nil || quota == nil || quota.Violations[0].QuotaId != "r\uFFFD") {
			t.Errorf("%v, %v: want both details", retry, quota)
		}
	}
}

// Only a call that is to be settled has its stream wrapped.
func TestStreamIsTheServersOwn(t *testing.T) {
	for name, settle := range map[string]string{"plain": "", "settled": "response:X-Actual-Cost"} {
		t.Run(name, func(t *testing.T) {
			rules := newRules(t, policy.RuleConfig{
				Name: "r", Match: "/", Settle: settle, Cost: policy.CostConfig{Max: map[bool]int64{true: 9}[settle != ""]},
				Limits: []policy.LimitConfig{limit(t, "fixed_window", "9/h", "ip")},
			})
			i := grpclimit.New(grpclimit.Options{Rules: rules, Stores: everywhere(newStore(newClock()))})
			info := &grpc.StreamServerInfo{FullMethod: outputMethod}
			err := i.StreamServerInterceptor()(nil, contextStream{nil, t.Context()}, info, func(_ any, ss grpc.ServerStream) error {
				if _, same := ss.(contextStream); same != (settle == "") {
					t.Errorf("the handler gets a %T", ss)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s contextStream) Context() context.Context { return s.ctx }
