package grpclimit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

// dial starts a server with a health service, on a wire in memory, and returns a client of it.
func dial(server *grpc.Server, o ...grpc.DialOption) (client healthpb.HealthClient, stop func()) {
	healthpb.RegisterHealthServer(server, health.NewServer())
	wire := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(wire) }()
	conn := sluice.Must(grpc.NewClient("passthrough:///api.example", append(o,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return wire.DialContext(ctx) }))...))
	return healthpb.NewHealthClient(conn), func() {
		_ = conn.Close()
		server.Stop()
	}
}

// Five a minute for each client, two at once, in front of every method of a server.
func ExampleUnary() {
	limit := sluice.Limit{Count: 5, Period: time.Minute, Burst: 2}
	perIP := sluice.New(local.New(local.Options{}), sluice.Must(tokenbucket.New(limit)), "calls")

	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpclimit.Unary(perIP, policy.IP())),
		grpc.ChainStreamInterceptor(grpclimit.Stream(perIP, policy.IP())),
	)

	client, stop := dial(server)
	defer stop()
	for range 3 {
		_, err := client.Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			switch detail := detail.(type) {
			case *errdetails.QuotaFailure:
				fmt.Println(detail.Violations[0].QuotaId, "allows", detail.Violations[0].QuotaValue)
			case *errdetails.RetryInfo:
				fmt.Println("retry in", detail.RetryDelay.AsDuration().Round(time.Second))
			}
		}
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// calls allows 5
	// retry in 12s
}

// Rules name methods as HTTP does, and keys of metadata as headers.
func ExampleNew() {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{
		Name:  "check",
		Match: "POST /grpc.health.v1.Health/Check",
		Limits: []policy.LimitConfig{
			{Algorithm: "fixed_window", Limit: sluice.Limit{Count: 1, Period: time.Hour}, Subject: "header:X-API-Key"},
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := grpclimit.New(grpclimit.Options{
		Rules:  rules,
		Stores: map[policy.OnOutage]sluice.Store{policy.Local: local.New(local.Options{})},
	})
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limits.UnaryServerInterceptor()),
		grpc.ChainStreamInterceptor(limits.StreamServerInterceptor()),
	)

	client, stop := dial(server)
	defer stop()
	for _, key := range []string{"ann", "ann", "bob"} {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", key)
		_, err := client.Check(ctx, &healthpb.HealthCheckRequest{})
		fmt.Println(key, status.Code(err))
	}
	// Output:
	// ann OK
	// ann ResourceExhausted
	// bob OK
}

// A rule file, which the interceptors follow: its edits, overrides in Redis, and the mode. Its store is Redis where it says
// so, behind a breaker, and each rule gets through an outage as its on_outage says.
func ExampleNew_file() {
	rules, err := service.Open(context.Background(), "../examples/rules.yaml", service.Options{Watch: true})
	if err != nil {
		fmt.Println(err) // every fault, with line and column
		return
	}
	defer rules.Close()
	limits := grpclimit.New(grpclimit.Options{
		Current: rules.Current,
		OnError: func(_ context.Context, method string, err error) {
			slog.Error("limits", "method", method, "error", err)
		},
	})
	_ = limits // its interceptors go to grpc.NewServer
	// Output:
}

// Rules and stores of one's own making: Redis behind a breaker, and a store for each on_outage.
func ExampleNew_stores() {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{
		Name:  "checkout",
		Match: "POST /shop.v1.Cart/Checkout",
		Limits: []policy.LimitConfig{
			{Algorithm: "token_bucket", Limit: sluice.Limit{Count: 5, Period: time.Minute, Burst: 10}, Subject: "ip"},
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shared, err := redis.Open("redis://127.0.0.1:6379/0", redis.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	breaker := failover.New(failover.Options{Heartbeat: func(ctx context.Context) (int, error) { return shared.Heartbeat(ctx, "shop") }})
	defer breaker.Close()
	limits := grpclimit.New(grpclimit.Options{
		Rules: rules,
		Stores: map[policy.OnOutage]sluice.Store{
			policy.Local: breaker.Guard(shared, local.NewBuckets(local.BucketsOptions{Share: breaker.Share})),
			policy.Allow: breaker.Guard(shared, failover.AllowAll{}),
			policy.Deny:  breaker.Guard(shared, failover.DenyAll{}),
		},
	})
	_ = limits
	// Output:
}

// A handler says in its trailer what a call cost after all: the estimate of ten is corrected once it has returned.
func ExampleInterceptor_UnaryServerInterceptor_settle() {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{
		Name: "search", Match: "/shop.v1.Search/",
		Cost:   policy.CostConfig{Default: 10, Max: 50},
		Settle: "response:X-Actual-Cost",
		Limits: []policy.LimitConfig{{Algorithm: "fixed_window", Limit: sluice.Limit{Count: 20, Period: time.Hour}, Subject: "global"}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := local.New(local.Options{})
	limits := grpclimit.New(grpclimit.Options{Rules: rules, Stores: map[policy.OnOutage]sluice.Store{policy.Local: store}})

	search := func(ctx context.Context, _ any) (any, error) {
		return "found", grpc.SetTrailer(ctx, metadata.Pairs("x-actual-cost", "3"))
	}

	ctx := grpc.NewContextWithServerTransportStream(context.Background(), silent{}) // as a server calls it
	info := &grpc.UnaryServerInfo{FullMethod: "/shop.v1.Search/Find"}
	for range 5 {
		_, err := limits.UnaryServerInterceptor()(ctx, nil, info, search)
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// OK
	// OK
	// ResourceExhausted
}

// silent is a call's transport that sends nothing.
type silent struct{}

func (silent) Method() string               { return "" }
func (silent) SetHeader(metadata.MD) error  { return nil }
func (silent) SendHeader(metadata.MD) error { return nil }
func (silent) SetTrailer(metadata.MD) error { return nil }

// Calls to somebody else's service wait for their turn, and stay away for as long as it asks.
func ExampleNewClient() {
	limit := sluice.Must(tokenbucket.New(sluice.Limit{Count: 100, Period: time.Minute, Burst: 10}))
	toBank := grpclimit.NewClient(sluice.New(local.New(local.Options{}), limit, "bank"), "payments")
	conn, err := grpc.NewClient("dns:///bank.example:443",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(toBank.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(toBank.StreamClientInterceptor()),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
}
