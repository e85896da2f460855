package httplimit_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// ways are all the ways to put a limit in front of a handler.
func ways(t *testing.T) map[string]func(http.Handler) http.Handler {
	t.Helper()
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{
		limit(t, "fixed_window", "1000/h", "ip"), limit(t, "leaky_bucket", "1000/s", "global"),
	}})
	m := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(newStore(newClock()))})
	settled := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "token_bucket", "1000/h", "ip")},
		Settle: "response:X-Actual-Cost", Cost: policy.CostConfig{Max: 10}})
	return map[string]func(http.Handler) http.Handler{
		"Wrap":             m.Wrap,
		"Wrap with settle": httplimit.New(httplimit.Options{Rules: settled, Stores: everywhere(newStore(newClock()))}).Wrap,
		"Limit":            httplimit.Limit(sluice.New(newStore(newClock()), bucket(1000, time.Hour, 1000), "r"), policy.IP()),
		"Check": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if m.Check(w, r) {
					next.ServeHTTP(w, r)
				}
			})
		},
	}
}

// listen serves h on loopback, by HTTP/1.1 or HTTP/2.
func listen(t *testing.T, h http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	if http2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv
}

// open sends a GET whose answer is read as it comes.
func open(t *testing.T, srv *httptest.Server) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// What a handler flushes reaches the client while the handler runs, with the rate fields before it.
func TestMustStream(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for name, limited := range ways(t) {
			for how, flush := range map[string]func(http.ResponseWriter) error{
				"Flusher":            func(w http.ResponseWriter) error { w.(http.Flusher).Flush(); return nil },
				"ResponseController": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
			} {
				t.Run(name+" "+how+map[bool]string{false: " HTTP/1.1", true: " HTTP/2"}[http2], func(t *testing.T) {
					read := make(chan struct{})
					srv := listen(t, limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						for _, line := range []string{"one\n", "two\n"} {
							if _, err := io.WriteString(w, line); err != nil {
								t.Error(err)
							}
							if err := flush(w); err != nil {
								t.Error(err)
							}
							select {
							case <-read:
							case <-r.Context().Done():
								t.Errorf("%q was not read while the handler ran", line)
								return
							}
						}
					})), http2)
					resp := open(t, srv)
					if resp.Header.Get("RateLimit") == "" || (resp.ProtoMajor == 2) != http2 {
						t.Errorf("RateLimit %q, HTTP/%d", resp.Header.Get("RateLimit"), resp.ProtoMajor)
					}
					lines := bufio.NewReader(resp.Body)
					for _, want := range []string{"one\n", "two\n"} {
						if line, err := lines.ReadString('\n'); err != nil || line != want {
							t.Fatalf("%q, %v: want %q", line, err, want)
						}
						read <- struct{}{}
					}
				})
			}
		}
	}
}

// Deadlines that a handler sets through http.ResponseController hold for its connection.
func TestMustSetDeadlines(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for name, limited := range ways(t) {
			t.Run(name+map[bool]string{false: " HTTP/1.1", true: " HTTP/2"}[http2], func(t *testing.T) {
				srv := listen(t, limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					control := http.NewResponseController(w)
					if err := control.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
						t.Errorf("SetReadDeadline: %v", err)
					}
					if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
						t.Errorf("SetWriteDeadline: %v", err)
					}
					if err := control.EnableFullDuplex(); err != nil && !http2 {
						t.Errorf("EnableFullDuplex: %v", err)
					}
					_, _ = io.WriteString(w, "one")
					if err := control.Flush(); err != nil {
						t.Errorf("Flush: %v", err)
					}
					if err := control.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
						t.Errorf("SetWriteDeadline: %v", err)
					}
					_, _ = io.WriteString(w, "two")
					_ = control.Flush()
				})), http2)
				if b, err := io.ReadAll(open(t, srv).Body); err == nil || string(b) != "one" {
					t.Errorf("got %q, %v: want one, and an end at the deadline", b, err)
				}
			})
		}
	}
}

// A handler may take the connection over.
func TestMustHijack(t *testing.T) {
	for name, limited := range ways(t) {
		for how, hijack := range map[string]func(http.ResponseWriter) (io.WriteCloser, error){
			"Hijacker": func(w http.ResponseWriter) (io.WriteCloser, error) {
				conn, _, err := w.(http.Hijacker).Hijack()
				return conn, err
			},
			"ResponseController": func(w http.ResponseWriter) (io.WriteCloser, error) {
				conn, _, err := http.NewResponseController(w).Hijack()
				return conn, err
			},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				srv := listen(t, limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, err := hijack(w)
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					_, _ = io.WriteString(conn, "HTTP/1.1 200 Mine\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmine")
				})), false)
				resp := open(t, srv)
				if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "mine" || resp.Status != "200 Mine" {
					t.Errorf("%s %q, %v: want what the handler wrote itself", resp.Status, b, err)
				}
			})
		}
	}
}

// The next handler gets the server's own ResponseWriter, so that io.Copy may use sendfile.
func TestMustHandOnTheWriter(t *testing.T) {
	for name, limited := range ways(t) {
		var got http.ResponseWriter
		w := httptest.NewRecorder()
		limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = w })).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if got != w {
			t.Errorf("%s: next gets a %T", name, got)
		}
	}
}

// OnDeny may cut the time in which a refused client must read its answer, and stream one.
func TestMustControlDenials(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "ip")}})
	m := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(newStore(newClock())),
		OnDeny: func(w http.ResponseWriter, r *http.Request, d sluice.Decision) {
			control := http.NewResponseController(w)
			if err := control.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Errorf("SetWriteDeadline: %v", err)
			}
			for _, part := range []string{"no", "t now"} {
				_, _ = io.WriteString(w, part)
				if err := control.Flush(); err != nil {
					t.Errorf("Flush: %v", err)
				}
			}
		}})
	srv := listen(t, m.Wrap(&counter{}), false)
	wantStatus(t, open(t, srv), 200)
	resp := open(t, srv)
	wantStatus(t, resp, 429)
	if got := body(t, resp); got != "not now" {
		t.Errorf("body %q: want what OnDeny wrote, and nothing after it", got)
	}
}
