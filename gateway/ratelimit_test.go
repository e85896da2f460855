package gateway_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	goredis "github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

// envoy is a client of the rate limit service, over TCP, as Envoy is.
type envoy struct {
	rls.RateLimitServiceClient
	conn *grpc.ClientConn
}

func startEnvoy(t *testing.T, limits *service.Service) envoy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := gateway.RateLimitServer(limits)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return envoy{rls.NewRateLimitServiceClient(conn), conn}
}

// descriptor has entries key, value, key, value.
func descriptor(entries ...string) *common.RateLimitDescriptor {
	d := &common.RateLimitDescriptor{}
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return d
}

func hits(n uint64, d *common.RateLimitDescriptor) *common.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func refund(d *common.RateLimitDescriptor) *common.RateLimitDescriptor {
	d.IsNegativeHits = true
	return d
}

func (e envoy) ask(t *testing.T, addend uint32, ds ...*common.RateLimitDescriptor) *rls.RateLimitResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := e.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "shop", Descriptors: ds, HitsAddend: addend})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Statuses) != len(ds) {
		t.Fatalf("%d statuses for %d descriptors", len(r.Statuses), len(ds))
	}
	return r
}

// text is a response in a line: the overall code, and each status as code, limit name, remaining.
func text(r *rls.RateLimitResponse) string {
	b := r.OverallCode.String()
	for _, s := range r.Statuses {
		b += " | " + s.Code.String()
		if l := s.CurrentLimit; l != nil {
			b += fmt.Sprintf(" %s %d", l.Name, s.LimitRemaining)
		}
	}
	return b
}

const enveloped = `trusted_proxies: [10.0.0.0/8]
%s
rules:
  - {name: login, match: "POST /login", limits: [{algorithm: fixed_window, limit: 3/30d, subject: ip}], denial: {body: "later, please"}}
  - {name: key, match: "shop.example/key", limits: [{algorithm: fixed_window, limit: 2/30d, subject: "header:X-API-Key"}]}
  - name: two
    match: /two
    limits:
      - {name: a, algorithm: fixed_window, limit: 5/30d, subject: global}
      - {name: b, algorithm: fixed_window, limit: 2/30d, subject: ip}
      - {name: s, algorithm: fixed_window, limit: 1/30d, subject: ip, shadow: true}
  - {name: barred, match: /barred, deny: ["header:X-Key=bad"], exempt: ["header:X-Key=good"], limits: [{algorithm: fixed_window, limit: 1/30d, subject: global}]}
  - {name: costly, match: /costly, cost: {default: 4}, limits: [{algorithm: fixed_window, limit: 10/30d, subject: global}]}
  - {name: bucket, match: /bucket, limits: [{algorithm: token_bucket, limit: 1/10s, burst: 4, subject: ip}]}
`

// Each history is a row of calls, on rules of its own, in process and in Redis.
func TestRateLimit(t *testing.T) {
	login := func(ip string) *common.RateLimitDescriptor {
		return descriptor("path", "/login?next=/", "method", "POST", "remote_address", ip)
	}
	two := func(ip string) *common.RateLimitDescriptor {
		return descriptor("path", "/two", "remote_address", ip)
	}
	type step struct {
		addend uint32
		ds     []*common.RateLimitDescriptor
		want   string
	}
	one := func(want string, ds ...*common.RateLimitDescriptor) step { return step{0, ds, want} }
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"counts by address", []step{
			one("OK | OK login 2", login("192.0.2.1")), one("OK | OK login 1", login("192.0.2.1")), one("OK | OK login 0", login("192.0.2.1")),
			one("OVER_LIMIT | OVER_LIMIT login 0", login("192.0.2.1")), one("OK | OK login 2", login("192.0.2.2")),
			one("OK | OK login 1", descriptor(":path", "//%6Cogin", ":method", "POST", "masked_remote_address", "192.0.2.2/32")),
		}},
		{"no rule", []step{one("OK | OK", descriptor("path", "/free")), one("OK | OK", descriptor("path", "/login"))}},
		{"no request", []step{one("OK | OK", descriptor("generic_key", "x", "remote_address", "192.0.2.1")), one("OK")}},
		{"a rule by name", []step{
			one("OK | OK login 2", descriptor("rule", "login", "remote_address", "192.0.2.1")),
			one("OK | OK login 1", login("192.0.2.1")), one("OK | OK", descriptor("rule", "none")),
		}},
		{"a header and a host", []step{
			one("OK | OK key 1", descriptor("path", "/key", "host", "SHOP.example:443", "x-api-key", "a")),
			one("OK | OK key 0", descriptor("path", "/key", ":authority", "shop.example", "X-API-Key", "a")),
			one("OVER_LIMIT | OVER_LIMIT key 0", descriptor("path", "/key", "host", "shop.example", "x-api-key", "a")),
			one("OK | OK key 1", descriptor("path", "/key", "host", "shop.example", "x-api-key", "b")),
		}},
		{"hits of the call and of a descriptor", []step{
			{2, []*common.RateLimitDescriptor{login("192.0.2.1")}, "OK | OK login 1"},
			{2, []*common.RateLimitDescriptor{login("192.0.2.1")}, "OVER_LIMIT | OVER_LIMIT login 1"},
			{2, []*common.RateLimitDescriptor{hits(1, login("192.0.2.1"))}, "OK | OK login 0"},
			{2, []*common.RateLimitDescriptor{hits(0, login("192.0.2.1"))}, "OK | OK login 0"},
			{0, []*common.RateLimitDescriptor{hits(1<<63, login("192.0.2.2"))}, "OVER_LIMIT | OVER_LIMIT login 3"},
		}},
		{"what the rule says", []step{
			one("OK | OK costly 6", descriptor("path", "/costly")), one("OK | OK costly 2", descriptor("path", "/costly")),
			{1, []*common.RateLimitDescriptor{descriptor("path", "/costly")}, "OK | OK costly 1"},
		}},
		{"a refund", []step{
			{3, []*common.RateLimitDescriptor{login("192.0.2.1")}, "OK | OK login 0"},
			{0, []*common.RateLimitDescriptor{refund(hits(2, login("192.0.2.1")))}, "OK | OK login 2"},
			{0, []*common.RateLimitDescriptor{refund(hits(50, login("192.0.2.1")))}, "OK | OK login 3"}, // never more than was spent
			{0, []*common.RateLimitDescriptor{refund(hits(50, login("192.0.2.1")))}, "OK | OK login 3"},
			{4, []*common.RateLimitDescriptor{login("192.0.2.1")}, "OVER_LIMIT | OVER_LIMIT login 3"},
		}},
		{"all or none", []step{
			one("OK | OK two/b 1 | OK login 2", two("192.0.2.1"), login("192.0.2.1")),
			one("OK | OK two/b 0 | OK login 1", two("192.0.2.1"), login("192.0.2.1")),
			one("OVER_LIMIT | OK login 1 | OVER_LIMIT two/b 0", login("192.0.2.1"), two("192.0.2.1")),
			one("OVER_LIMIT | OVER_LIMIT two/b 0 | OK login 1", two("192.0.2.1"), login("192.0.2.1")),
			one("OK | OK login 0", login("192.0.2.1")),
			one("OK | OK two/b 1", two("192.0.2.2")), one("OK | OK two/b 0", two("192.0.2.2")), one("OK | OK two/a 0", two("192.0.2.3")), // a: five
			one("OVER_LIMIT | OVER_LIMIT two/a 0", two("192.0.2.3")),
		}},
		{"listed", []step{
			one("OVER_LIMIT | OVER_LIMIT barred 1", descriptor("path", "/barred", "x-key", "bad")),
			one("OVER_LIMIT | OVER_LIMIT | OK login 3", descriptor("path", "/barred", "x-key", "bad"), login("192.0.2.1")),
			one("OK | OK", descriptor("path", "/barred", "x-key", "good")),
			one("OK | OK barred 0", descriptor("path", "/barred")),
		}},
		{"a path with a fragment", []step{
			one("OK | OK login 2", descriptor("path", "/login#x", "method", "POST")), one("OK | OK login 1", descriptor("path", "/login#x?y", "method", "POST")),
			one("OK | OK login 0", descriptor("path", "/login?x#y", "method", "POST")), one("OK | OK", descriptor("path", "/login%23x", "method", "POST")),
			one("OK | OK", descriptor("path", "/login;x", "method", "POST")), one("OVER_LIMIT | OVER_LIMIT login 0", descriptor("path", "/login#", "method", "POST")),
		}},
		{"a path whose query can't be read", []step{
			one("OK | OK login 2", descriptor("path", "/%6Cogin?\x7f", "method", "POST")), one("OK | OK login 1", descriptor("path", "/login?\x01#", "method", "POST")),
		}},
		{"a path that can't be read", []step{
			one("OK | OK", descriptor("path", "/%zz")), one("OK | OK", descriptor("path", "")), one("OK | OK", descriptor("path", "*", "method", "")),
		}},
	} {
		if c.name == "listed" { // a denied descriptor has no limit to show
			c.steps[0].want = "OVER_LIMIT | OVER_LIMIT"
		}
		for _, where := range []string{"in process", "in Redis"} {
			t.Run(c.name+" "+where, func(t *testing.T) {
				store := ""
				if where == "in Redis" {
					store = fmt.Sprintf("store: {redis: 'redis://%s', timeout: 5s}", redistest.Start(t).Addr)
				}
				s, _ := open(t, fmt.Sprintf(enveloped, store))
				e := startEnvoy(t, s)
				for i, step := range c.steps {
					r := e.ask(t, step.addend, step.ds...)
					if got := text(r); got != step.want {
						t.Errorf("step %d: %s, want %s", i, got, step.want)
					}
					for j, st := range r.Statuses {
						if st.DurationUntilReset == nil || st.DurationUntilReset.AsDuration() < 0 {
							t.Errorf("step %d, status %d: duration_until_reset %v", i, j, st.DurationUntilReset)
						}
					}
				}
			})
		}
	}
}

// A refusal says what a client needs, in Envoy's words.
func TestRateLimitRefusal(t *testing.T) {
	s, _ := open(t, fmt.Sprintf(enveloped, ""))
	e := startEnvoy(t, s)
	bucket := descriptor("path", "/bucket", "remote_address", "192.0.2.1")
	r := e.ask(t, 4, bucket)
	l := r.Statuses[0].CurrentLimit
	if l.RequestsPerUnit != 1 || l.Unit != rls.RateLimitResponse_RateLimit_SECOND || l.UnitMultiplier.GetValue() != 10 {
		t.Errorf("limit %v, want 1 in 10 SECOND", l)
	}
	if len(r.ResponseHeadersToAdd) > 0 || r.RawBody != nil {
		t.Errorf("what passes gets %v and %q", r.ResponseHeadersToAdd, r.RawBody)
	}
	headers := func(r *rls.RateLimitResponse) (h []string) {
		for _, f := range r.ResponseHeadersToAdd {
			h = append(h, f.Key+": "+f.Value)
		}
		return h
	}
	r = e.ask(t, 2, bucket)
	if reset := r.Statuses[0].DurationUntilReset.AsDuration(); reset <= 15*time.Second || reset > 20*time.Second {
		t.Errorf("reset in %v, want about 20s: when two pass", reset)
	}
	if got := strings.Join(headers(r), ", "); got != "retry-after: 20" {
		t.Errorf("header %q, want retry-after: 20", got)
	}
	if got := headers(e.ask(t, 5, bucket)); len(got) > 0 { // more than the burst: no wait helps
		t.Errorf("header %q for what never passes, want none", got)
	}
	r = e.ask(t, 4, descriptor("rule", "login", "remote_address", "192.0.2.1"))
	if string(r.RawBody) != "later, please" || !slices.Contains(headers(r), "content-type: text/plain; charset=utf-8") {
		t.Errorf("body %q, header %q", r.RawBody, headers(r))
	}
}

// In shadow mode nobody is refused or told anything; off, nothing is counted.
func TestRateLimitModes(t *testing.T) {
	for _, mode := range []string{"shadow", "off"} {
		s, eyes := open(t, fmt.Sprintf(enveloped, "mode: "+mode))
		e := startEnvoy(t, s)
		for range 5 {
			if got := text(e.ask(t, 0, descriptor("rule", "login", "remote_address", "192.0.2.1"))); got != "OK | OK" {
				t.Errorf("%s: %s, want OK", mode, got)
			}
		}
		if got, want := len(eyes.Top.List()), map[string]int{"shadow": 1, "off": 0}[mode]; got != want {
			t.Errorf("%s: %d subjects in /top, want %d", mode, got, want)
		}
	}
}

// A shadow limit is asked of calls that pass, and refuses none.
func TestRateLimitShadow(t *testing.T) {
	s, eyes := open(t, fmt.Sprintf(enveloped, ""))
	e := startEnvoy(t, s)
	for _, want := range []string{"OK | OK two/b 1", "OK | OK two/b 0", "OVER_LIMIT | OVER_LIMIT two/b 0"} {
		if got := text(e.ask(t, 0, descriptor("path", "/two", "remote_address", "192.0.2.1"))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	denied := map[string]int64{}
	for _, d := range eyes.Top.List() {
		denied[d.Limit] = d.Count
	}
	if denied["two/s"] != 1 || denied["two/b"] != 1 {
		t.Errorf("denied %v, want the shadow once, of two calls that passed", denied)
	}
}

func TestRateLimitBounds(t *testing.T) {
	s, _ := open(t, fmt.Sprintf(enveloped, ""))
	e := startEnvoy(t, s)
	many := make([]*common.RateLimitDescriptor, 17)
	for i := range many {
		many[i] = descriptor("path", "/")
	}
	long := make([]string, 2*65)
	for _, req := range []*rls.RateLimitRequest{
		{Descriptors: many}, {Descriptors: []*common.RateLimitDescriptor{descriptor(long...)}},
	} {
		if _, err := e.ShouldRateLimit(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v, want InvalidArgument", err)
		}
	}
	path := func(size int) *common.RateLimitDescriptor {
		return descriptor("path", "/two?"+strings.Repeat("x", size))
	}
	for range 2 {
		e.ask(t, 0, path(1000))
	}
	if r := e.ask(t, 0, path(400_000), path(400_000)); r.OverallCode != rls.RateLimitResponse_OVER_LIMIT {
		t.Errorf("a long path, twice: %v, want it counted", text(r))
	}
	big := &rls.RateLimitRequest{Descriptors: []*common.RateLimitDescriptor{path(1 << 20)}}
	if _, err := e.ShouldRateLimit(t.Context(), big); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v, want ResourceExhausted", err)
	}
	for _, size := range []int{60_000, 70_000} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-long", strings.Repeat("x", size))
		_, err := e.ShouldRateLimit(ctx, &rls.RateLimitRequest{})
		if fits := size < 1<<16; fits != (err == nil) {
			t.Errorf("%d bytes of header: %v, want at most 64 KiB", size, err)
		}
	}
}

// Probes are answered, and no stream of theirs holds up the end.
func TestRateLimitHealth(t *testing.T) {
	s, _ := open(t, fmt.Sprintf(enveloped, ""))
	health := healthpb.NewHealthClient(startEnvoy(t, s).conn)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if r, err := health.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil || r.Status != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("Check: %v, %v, want SERVING", r, err)
	}
	watch, err := health.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("Watch: %v, want Unimplemented", err)
	}
}

// While Redis hangs each call is answered before Envoy gives up, and by the budget that the process has of its own.
// The file's timeout is as long as an operator might set it.
func TestRateLimitRedisHangs(t *testing.T) {
	server := redistest.Start(t)
	store := fmt.Sprintf("store: {redis: 'redis://%s', timeout: 5s}\nfailover: {instances: 1, open_for: 100ms}", server.Addr)
	s, _ := open(t, fmt.Sprintf(enveloped, store))
	e := startEnvoy(t, s)
	d := []*common.RateLimitDescriptor{descriptor("path", "/two", "remote_address", "192.0.2.1"), descriptor("path", "/login", "method", "POST", "remote_address", "192.0.2.1")}
	if got := text(e.ask(t, 0, d...)); got != "OK | OK two/b 1 | OK login 2" {
		t.Fatalf("before: %s", got)
	}
	server.Stop()
	defer server.Cont()
	const calls, bound = 60, 20 * time.Millisecond
	var took []time.Duration
	admitted := 0
	for range calls {
		start := time.Now()
		r := e.ask(t, 0, d...)
		took = append(took, time.Since(start))
		if r.OverallCode == rls.RateLimitResponse_OK {
			admitted++
		}
		time.Sleep(5 * time.Millisecond) // some meet a closed breaker, some an open one, some probe
	}
	if admitted > 1 {
		t.Errorf("%d calls pass while Redis hangs, want at most one: one was left", admitted)
	}
	slices.Sort(took)
	t.Logf("took %v in the median, %v at most", took[calls/2], took[calls-1])
	if late := took[calls*3/4]; late > bound || took[calls-1] > time.Second { // a busy machine may be late now and then
		t.Errorf("a quarter of the calls took more than %v, and one %v; want %v", late, took[calls-1], bound)
	}
}

// All limits of all descriptors are one round trip, shadows apart, and none is charged where one refuses.
func TestRateLimitIsOneRoundTrip(t *testing.T) {
	server := redistest.Start(t)
	s, _ := open(t, fmt.Sprintf(enveloped, fmt.Sprintf("store: {redis: 'redis://%s', timeout: 5s}", server.Addr)))
	e := startEnvoy(t, s)
	bucket := func(ip string) *common.RateLimitDescriptor {
		return descriptor("path", "/bucket", "remote_address", ip)
	}
	login := descriptor("path", "/login", "method", "POST", "remote_address", "192.0.2.1")
	e.ask(t, 0, bucket("192.0.2.9"), login) // until Redis knows the scripts
	calls := redistest.CallsOf(t, server.Client(), func() {
		if got := text(e.ask(t, 0, bucket("192.0.2.1"), bucket("192.0.2.2"), login)); got != "OK | OK bucket 3 | OK bucket 3 | OK login 1" {
			t.Errorf("%s", got)
		}
	})
	if n := calls["evalsha"] + calls["eval"]; n > 2 || calls["evalsha"] < 1 { // its first of three keys may be unknown
		t.Errorf("%v, want one script call", calls)
	}
	calls = redistest.CallsOf(t, server.Client(), func() { e.ask(t, 0, bucket("192.0.2.1"), bucket("192.0.2.2"), login) })
	if calls["evalsha"] != 1 || calls["eval"] != 0 {
		t.Errorf("%v, want one script call", calls)
	}
	if got := text(e.ask(t, 0, bucket("192.0.2.1"), login)); got != "OVER_LIMIT | OK bucket 2 | OVER_LIMIT login 0" {
		t.Errorf("%s, want nothing charged to the bucket", got)
	}
}

// What is given back is so to shadows, too, and what was never spent is not.
func TestRateLimitRefund(t *testing.T) {
	server := redistest.Start(t)
	s, eyes := open(t, fmt.Sprintf(enveloped, fmt.Sprintf("store: {redis: 'redis://%s', timeout: 5s}", server.Addr)))
	e := startEnvoy(t, s)
	two := func(ip string) *common.RateLimitDescriptor { return descriptor("path", "/two", "remote_address", ip) }
	login := func() *common.RateLimitDescriptor { return descriptor("rule", "login", "remote_address", "192.0.2.1") }
	e.ask(t, 0, two("192.0.2.1"), two("192.0.2.2"), login())
	if got := text(e.ask(t, 0, hits(0, two("192.0.2.1")), hits(0, login()))); got != "OK | OK two/b 1 | OK login 2" {
		t.Errorf("%s after nothing was given back", got)
	}
	got := text(e.ask(t, 0, refund(two("192.0.2.1")), refund(hits(7, two("192.0.2.2"))), refund(login())))
	if got != "OK | OK two/b 2 | OK two/b 2 | OK login 3" {
		t.Errorf("%s", got)
	}
	if e.ask(t, 0, two("192.0.2.1")); len(eyes.Top.List()) > 0 { // its shadow lets one pass
		t.Errorf("denied %v, want the shadow to have its one back", eyes.Top.List())
	}
}

// A limit that can't be given back keeps no other from it, and takes nothing back from one.
func TestRateLimitRefundsAreApart(t *testing.T) {
	server := redistest.Start(t)
	s, _ := open(t, fmt.Sprintf(enveloped, fmt.Sprintf("store: {redis: 'redis://%s', timeout: 5s}", server.Addr)))
	e := startEnvoy(t, s)
	costly := descriptor("path", "/costly")
	login := func() *common.RateLimitDescriptor { return descriptor("rule", "login", "remote_address", "192.0.2.1") }
	e.ask(t, 0, hits(8, costly), login())
	if err := server.Client().Set(t.Context(), "sluice:{192.0.2.1}:login:fixed_window", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var got string
	for range 50 { // a busy machine may not be done in time
		e.ask(t, 0, refund(login()), refund(hits(8, descriptor("path", "/costly"))))
		if got = text(e.ask(t, 0, hits(0, descriptor("path", "/costly")))); got == "OK | OK costly 10" {
			return
		}
	}
	t.Errorf("%s, want all back beside a damaged key", got)
}

// Where a later key's server fails, on a ring of them, what was given back before stays so.
func TestRateLimitRefundOnARing(t *testing.T) {
	var servers []*redistest.Server
	addrs := map[string]string{}
	for i := range 2 {
		servers = append(servers, redistest.Start(t))
		addrs[fmt.Sprint(i)] = servers[i].Addr
	}
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: addrs, HeartbeatFrequency: time.Hour, MaxRetries: -1})
	t.Cleanup(func() { _ = ring.Close() })
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(enveloped, "store: {timeout: 5s}\nfailover: {instances: 1}")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(t.Context(), path, service.Options{Client: ring, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	e := startEnvoy(t, s)
	of := func(ip string) *common.RateLimitDescriptor { return descriptor("rule", "login", "remote_address", ip) }
	var on [2]string // a client for each server
	for i := 0; on[0] == "" || on[1] == ""; i++ {
		ip := fmt.Sprint("192.0.2.", i)
		e.ask(t, 0, of(ip))
		for n, server := range servers {
			if server.Client().Exists(t.Context(), "sluice:{"+ip+"}:login:fixed_window").Val() == 1 {
				on[n] = ip
			}
		}
	}
	servers[1].Kill()
	var used string
	for range 50 { // a busy machine may not be done in time
		e.ask(t, 0, refund(hits(3, of(on[0]))), refund(hits(3, of(on[1]))))
		if used = servers[0].Client().HGet(t.Context(), "sluice:{"+on[0]+"}:login:fixed_window", "count").Val(); used == "" {
			return
		}
	}
	t.Errorf("%s used after it was given back, want nothing kept", used)
}

// While Redis is away nothing is given back, since it may be what Redis charged, and nothing fails.
func TestRateLimitRefundInAnOutage(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	s, _ := open(t, fmt.Sprintf(enveloped, fmt.Sprintf("store: {redis: 'redis://%s'}\nfailover: {instances: 1}", server.Addr)))
	e := startEnvoy(t, s)
	d := func() *common.RateLimitDescriptor {
		return hits(2, descriptor("path", "/two", "remote_address", "192.0.2.1"))
	}
	for i, step := range []struct {
		d    *common.RateLimitDescriptor
		want string
	}{{d(), "OK | OK two/b 0"}, {d(), "OVER_LIMIT | OVER_LIMIT two/b 0"}, {refund(d()), "OK | OK two/b 0"}, {d(), "OVER_LIMIT | OVER_LIMIT two/b 0"}} {
		if got := text(e.ask(t, 0, step.d)); got != step.want {
			t.Errorf("call %d: %s, want %s", i, got, step.want)
		}
	}
}

// Each call is decided by the rules as they are: edits, overrides, and stores of the mode.
func TestRateLimitFollowsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	s := openAt(t, path, fmt.Sprintf(enveloped, ""), nil)
	e := startEnvoy(t, s)
	login := descriptor("rule", "login", "remote_address", "192.0.2.1")
	if got := text(e.ask(t, 0, login)); got != "OK | OK login 2" {
		t.Errorf("%s", got)
	}
	edited := strings.Replace(fmt.Sprintf(enveloped, ""), "limit: 3/30d, subject: ip", "limit: 3/30d, subject: ip, overrides: [{subject: 192.0.2.1, limit: 9/30d}]", 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := e.ask(t, 0, login)
	if got := text(r); got != "OK | OK login 7" || r.Statuses[0].CurrentLimit.RequestsPerUnit != 9 {
		t.Errorf("%s of %v, want 7 of the 9 that the edited file gives this client", got, r.Statuses[0].CurrentLimit)
	}
}
