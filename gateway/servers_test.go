package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluice-go/sluice/gateway"
)

// pipes is a net.Listener in memory, so that servers run in virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func listenInMemory() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- proxied{server}:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// proxied is a connection from the proxy that checkers trust.
type proxied struct{ net.Conn }

func (proxied) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// Each check is answered within a minute, however long its bucket would hold it.
func TestServerAnswersInTime(t *testing.T) {
	const rules = "trusted_proxies: [127.0.0.1]\nrules:\n  - {name: slow, match: /, limits: [{algorithm: leaky_bucket, limit: 1/10s, burst: 100, subject: ip}]}\n"
	for status, want := range map[int]int{0: 503, 403: 403} {
		synctest.Test(t, func(t *testing.T) {
			l := listenInMemory()
			server := gateway.Server(checker(t, rules, status), nil)
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			client := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: true,
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					c, err := l.Dial(ctx)
					time.Sleep(4900 * time.Millisecond) // the server waits for the header, almost as long as it may
					return c, err
				},
			}}
			type outcome struct {
				status int
				after  time.Duration
			}
			outcomes := make(chan outcome)
			const calls = 10
			for range calls { // the first at once, the last after 90 s
				go func() {
					start := time.Now()
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://sluice/", nil)
					req.Header = http.Header{"X-Original-Method": {"GET"}, "X-Original-Uri": {"/"}, "X-Forwarded-For": {"192.0.2.1"}}
					resp, err := client.Do(req)
					if err != nil {
						t.Errorf("%v after %v", err, time.Since(start))
						outcomes <- outcome{}
						return
					}
					_ = resp.Body.Close()
					outcomes <- outcome{resp.StatusCode, time.Since(start)}
				}()
			}
			passed, refused := 0, 0
			for range calls {
				switch o := <-outcomes; {
				case o.after >= time.Minute:
					t.Errorf("status %d after %v, want less than a minute", o.status, o.after)
				case o.status == 200:
					passed++
				case o.status == want:
					refused++
				default:
					t.Errorf("status %d after %v, want 200 or %d", o.status, o.after, want)
				}
			}
			if passed < 5 || refused < 4 {
				t.Errorf("%d pass and %d are refused, want those due within 50 s to pass", passed, refused)
			}
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
	}
}

// Calls whose message does not come end, and so does a connection without calls.
func TestRateLimitServerForgetsTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := open(t, fmt.Sprintf(enveloped, ""))
		l, server := listenInMemory(), gateway.RateLimitServer(s)
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		conn, err := grpc.NewClient("passthrough:///sluice", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.Dial(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		var open sync.WaitGroup
		silent := func() {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that the test ends where the server's bound fails
			stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			open.Go(func() {
				defer cancel()
				if err := stream.RecvMsg(&rls.RateLimitResponse{}); status.Code(err) != codes.DeadlineExceeded || time.Since(start) > 5*time.Second {
					t.Errorf("%v after %v, want DeadlineExceeded within 5s", err, time.Since(start))
				}
			})
		}
		for range 900 {
			silent()
		}
		time.Sleep(time.Minute)
		if state := conn.GetState(); state != connectivity.Ready {
			t.Errorf("%v after a minute, want READY", state)
		}
		if _, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &rls.RateLimitRequest{}); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute)
		if state := conn.GetState(); state != connectivity.Idle {
			t.Errorf("%v after ten minutes without a call, want IDLE", state)
		}
		silent()
		start := time.Now()
		if server.GracefulStop(); time.Since(start) > 5*time.Second {
			t.Errorf("a call without a message holds up the end for %v, want 5s at most", time.Since(start))
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		open.Wait()
		if err := <-served; err != nil && !strings.Contains(err.Error(), "closed") {
			t.Error(err)
		}
	})
}
