package gateway

import (
	"context"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
)

// The bounds of one call of Envoy.
const (
	maxMessage     = 1 << 20 // bytes: all that a client can make Envoy say of one request, in each of the descriptors
	maxDescriptors = 16
	maxEntries     = 64 // of a descriptor
	maxStreams     = 1000
	callTime       = 5 * time.Second // of a call, until its message has come and it is answered
	aliveTime      = time.Minute     // between questions to a silent peer whether it is still there
	pingTime       = 5 * time.Second // between a peer's own such questions, which gRPC else forbids below five minutes
)

// Envoy gives up after 20 ms unless told. What a store has not answered within decideTime its fallback decides. Longer
// than the 10 ms after which a breaker counts a failure.
const decideTime = 12 * time.Millisecond

// RateLimit returns Envoy's rate limit service v3 over the rules of a Service.
//
// A descriptor is a request: its entries path, method, host and remote_address are what their names say (also :path,
// :method and :authority), and any other entry is a field of the request's header, of that name. It is matched by the
// rules as an HTTP request is; or, with an entry rule, that rule alone holds. A descriptor with neither path nor rule is
// no request, and passes uncounted, as one does that no rule matches. What Envoy says is believed, its trusted hops
// included; X-Forwarded-For is none of the entries, unless a rule is to see it. The domain says nothing, and neither does
// a descriptor's own limit.
//
// All limits of all descriptors are charged with one [sluice.TakeAll], or none is; where their rules differ in on_outage,
// the store of the strictest decides. Where one refuses, those after it are looked at, for their status. A descriptor
// costs its hits_addend, or else the request's, or else what the rule says. With is_negative_hits that much is given back,
// now: a window that has ended gets nothing, and neither does what was charged while Redis was away.
// duration_until_reset is there for each descriptor: until the request would pass, where it is refused for a time, else
// until its limit is as good as new.
//
// A call is answered within 15 ms, also while Redis hangs: with what the rule's on_outage says. The Delay of a leaky
// bucket is not held, since Envoy would not wait for it.
func RateLimit(limits *service.Service) rls.RateLimitServiceServer { return &rateLimit{limits: limits} }

// RateLimitServer returns a gRPC server with [RateLimit] and the health service, and bounds on what a peer may take up.
// Of health it has Check and not Watch, whose streams would hold up the end of the server. What a client has put into a
// descriptor is never an error: a text there may hold bytes that are no UTF-8, where another server would refuse the call.
func RateLimitServer(limits *service.Service) *grpc.Server {
	s := grpc.NewServer(
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(proto.Name)}),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeader), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(headerTime), grpc.InTapHandle(inCallTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: aliveTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingTime, PermitWithoutStream: true}),
	)
	rls.RegisterRateLimitServiceServer(s, RateLimit(limits))
	healthpb.RegisterHealthServer(s, probed{health.NewServer()})
	return s
}

// inCallTime ends a call whose message does not come. All calls of the server have one message and one answer. gRPC has no
// bound of its own for this: an interceptor runs when the message is there.
func inCallTime(ctx context.Context, _ *tap.Info) (context.Context, error) {
	bounded, cancel := context.WithTimeout(ctx, callTime)
	context.AfterFunc(ctx, cancel) // gRPC cancels ctx as the call ends
	return bounded, nil
}

// probed is a health service for probes alone. Without Watch a client takes a server for healthy as long as it is connected.
type probed struct{ *health.Server }

func (probed) Watch(*healthpb.HealthCheckRequest, healthpb.Health_WatchServer) error {
	return status.Error(codes.Unimplemented, "gateway: health: Watch: want Check")
}

type rateLimit struct {
	rls.UnimplementedRateLimitServiceServer
	limits *service.Service
}

// ShouldRateLimit decides a call.
func (e *rateLimit) ShouldRateLimit(ctx context.Context, req *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	if n := len(req.GetDescriptors()); n > maxDescriptors {
		return nil, status.Errorf(codes.InvalidArgument, "gateway: descriptors: %d: want at most %d", n, maxDescriptors)
	}
	for i, d := range req.GetDescriptors() {
		if n := len(d.GetEntries()); n > maxEntries {
			return nil, status.Errorf(codes.InvalidArgument, "gateway: descriptors[%d].entries: %d: want at most %d", i, n, maxEntries)
		}
	}
	rules, stores := e.limits.Current()
	c := &call{shadow: rules.Mode() == policy.ModeShadow}
	for _, d := range req.GetDescriptors() {
		c.add(rules, d, req.GetHitsAddend())
	}
	deciding, cancel := context.WithTimeout(ctx, decideTime)
	defer cancel()
	if err := c.decide(deciding, stores); err != nil && !c.shadow {
		return nil, status.Error(codes.Unavailable, "gateway: the store can't decide")
	}
	return c.response(), nil
}
