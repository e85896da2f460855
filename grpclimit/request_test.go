package grpclimit_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/policy"
)

// A subject gets the whole request that the call is.
func TestRequestOfACall(t *testing.T) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{
		":authority": {"api.example"}, "host": {"other.example"}, "x-api-key": {"a", "b"}, "trace-bin": {"\xff\xfe"},
	})
	ctx = peer.NewContext(ctx, &peer.Peer{
		Addr:     net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[2001:db8::1]:443")),
		AuthInfo: credentials.TLSInfo{State: tls.ConnectionState{ServerName: "sni.example"}},
	})
	var got *http.Request
	subject := func(r *http.Request) string { got = r; return "s" }
	l := sluice.New(newStore(newClock()), bucket(1, time.Hour, 1), "l")
	info := &grpc.UnaryServerInfo{FullMethod: "/a/%2e%2e/b"}
	if _, err := grpclimit.Unary(l, subject)(ctx, nil, info, func(context.Context, any) (any, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.URL.Path != "/a/%2e%2e/b" || got.Host != "api.example" || got.RemoteAddr != "[2001:db8::1]:443" || got.ProtoMajor != 2 {
		t.Errorf("%s %s of %s from %s", got.Method, got.URL, got.Host, got.RemoteAddr)
	}
	if got.TLS == nil || got.TLS.ServerName != "sni.example" {
		t.Errorf("TLS %v, want the peer's", got.TLS)
	}
	if want := (http.Header{"X-Api-Key": {"a", "b"}, "Trace-Bin": {"//4"}}); !reflect.DeepEqual(got.Header, want) {
		t.Errorf("header %v, want %v", got.Header, want)
	}
}

// Whatever the method, the metadata and the peer are: a call is decided, and the second of the same is refused.
func FuzzCall(f *testing.F) {
	f.Add(unaryMethod, "x-api-key", "k", "192.0.2.1:1")
	f.Add("", ":authority", "a:b:c", "")
	f.Add("//../%2F?x#y/ \x00", "bin-bin", "\xff", "unix")
	f.Add("*", "cookie", "a=b; c", "[::1%eth0]:80")
	f.Add("/a/b", "x-forwarded-for", ",,,1.2.3.4", "10.0.0.1:1")
	f.Add("/a/b", "HOST", "x", "10.0.0.1")
	f.Fuzz(func(t *testing.T, method, key, value, addr string) {
		rules := compiled(t, policy.Config{
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			Rules: []policy.RuleConfig{
				{Name: "r", Match: "/{a}/{b}", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "path:b")}},
				{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "header:X-API-Key"), limit(t, "fixed_window", "9/h", "cookie:a")}},
			},
		})
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{key: {value}})
		ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.UnixAddr{Name: addr}})
		i := grpclimit.New(grpclimit.Options{Rules: rules, Stores: everywhere(newStore(newClock()))}).UnaryServerInterceptor()
		for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
			_, err := i(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, func(context.Context, any) (any, error) { return nil, nil })
			wantCode(t, err, want)
		}
	})
}

func BenchmarkUnary(b *testing.B) {
	rules := newRules(b, policy.RuleConfig{Name: "r", Match: "POST " + unaryMethod, Limits: []policy.LimitConfig{limit(b, "token_bucket", "1000000/s", "ip", 1_000_000_000)}})
	limited := grpclimit.New(grpclimit.Options{Rules: rules, Stores: everywhere(newStore(newClock()))}).UnaryServerInterceptor()
	one := grpclimit.Unary(sluice.New(newStore(newClock()), bucket(1, time.Microsecond, 1_000_000_000), "l"), policy.IP())
	ctx := metadata.NewIncomingContext(b.Context(), metadata.Pairs(":authority", "api.example", "content-type", "application/grpc", "user-agent", "grpc-go", "x-api-key", "k"))
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1"))})
	for name, bb := range map[string]struct {
		interceptor grpc.UnaryServerInterceptor
		method      string
	}{"rules": {limited, unaryMethod}, "no rule matches": {limited, outputMethod}, "one limiter": {one, unaryMethod}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			info := &grpc.UnaryServerInfo{FullMethod: bb.method}
			handler := func(context.Context, any) (any, error) { return nil, nil }
			for b.Loop() {
				_, _ = bb.interceptor(ctx, nil, info, handler)
			}
		})
	}
}
