package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

const token = "correct horse battery"

// operator is who asks the admin port.
type operator struct {
	limits *service.Service
	eyes   *gateway.Eyes
	admin  http.Handler
}

func operate(t *testing.T, rules string, o gateway.AdminOptions) operator {
	t.Helper()
	s, eyes := open(t, rules)
	o.Eyes = eyes
	admin, err := gateway.Admin(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return operator{s, eyes, admin}
}

// ask returns the status and the JSON of an answer.
func (o operator) ask(method, target, bearer string) (int, map[string]any) {
	r := httptest.NewRequest(method, target, nil)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	w := httptest.NewRecorder()
	o.admin.ServeHTTP(w, r)
	var body map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &body) // nil for what is no JSON
	return w.Code, body
}

// request sends a request from an address through the middleware, and returns the status.
func (o operator) request(path, ip, key string) int {
	r := httptest.NewRequest("GET", path, nil)
	r.RemoteAddr = ip + ":1234"
	if key != "" {
		r.Header.Set("X-API-Key", key)
	}
	w := httptest.NewRecorder()
	o.limits.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	return w.Code
}

const operated = `
rules:
  - {name: login, match: /login, limits: [{algorithm: fixed_window, limit: 2/30d, subject: ip}]}
  - name: api
    match: /api
    limits:
      - {name: key, algorithm: fixed_window, limit: 1/30d, subject: "header:X-API-Key"}
      - {name: all, algorithm: fixed_window, limit: 9/30d, subject: global}
`

func TestAdmin(t *testing.T) {
	o := operate(t, operated, gateway.AdminOptions{Metrics: http.NotFoundHandler()})
	if status, body := o.ask("GET", "/readyz", ""); status != 503 || body["ready"] != false {
		t.Errorf("before the listeners are open: %d %v", status, body)
	}
	o.eyes.SetReady(true)
	if status, body := o.ask("GET", "/readyz", ""); status != 200 || body["ready"] != true || body["degraded"] != false {
		t.Errorf("/readyz: %d %v", status, body)
	}
	if status, _ := o.ask("GET", "/healthz", ""); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
	st := o.limits.Status()
	if status, body := o.ask("GET", "/rules", ""); status != 200 || body["hash"] != st.Hash || body["rules"] != 2.0 || body["mode"] != "enforce" || body["last_error"] != "" {
		t.Errorf("/rules: %d %v", status, body)
	}
	if status, body := o.ask("GET", "/status", ""); status != 200 || body["goroutines"] == 0.0 || body["ready"] != true {
		t.Errorf("/status: %d %v", status, body)
	}
	for _, c := range []struct {
		method, target string
		want           int
	}{
		{"GET", "/", 404}, {"GET", "/metrics", 404}, {"POST", "/healthz", 405}, {"GET", "/reset", 405}, {"GET", "/override", 405},
		{"POST", "/reset?rule=login&subject=192.0.2.1", 403}, {"POST", "/override?rule=login", 403}, {"DELETE", "/override", 403},
	} {
		if status, _ := o.ask(c.method, c.target, token); status != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.target, status, c.want)
		}
	}
	s, eyes := open(t, operated)
	for what, options := range map[string]gateway.AdminOptions{"no eyes": {}, "a short token": {Eyes: eyes, Token: "hunter2"}} {
		if _, err := gateway.Admin(s, options); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// /top counts those who were refused, and not whom a shadow would have refused, of a limit or of all of them.
func TestAdminTopWithoutShadows(t *testing.T) {
	const shadowed = `
rules:
  - name: api
    match: /api
    limits:
      - {name: now, algorithm: fixed_window, limit: 4/30d, subject: ip}
      - {name: next, algorithm: fixed_window, limit: 1/30d, subject: ip, shadow: true}
`
	for mode, want := range map[string]string{"enforce": "[api:1]", "shadow": "[]"} {
		o := operate(t, "mode: "+mode+shadowed, gateway.AdminOptions{})
		for range 5 {
			o.request("/api", "192.0.2.1", "")
		}
		denied := []string{}
		for _, d := range o.eyes.Top.List() {
			denied = append(denied, fmt.Sprintf("%s:%d", d.Limit, d.Count))
		}
		if got := fmt.Sprint(denied); got != want {
			t.Errorf("%s: denied %s, want %s", mode, got, want)
		}
	}
}

// What an operator says and the port would not do is refused with the cause, and never half done.
func TestAdminParameters(t *testing.T) {
	o := operate(t, operated, gateway.AdminOptions{Token: token})
	const form = "application/x-www-form-urlencoded"
	send := func(method, target, kind, body string) (int, string) {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		w := httptest.NewRecorder()
		http.MaxBytesHandler(o.admin, 64<<10).ServeHTTP(w, r)
		var p struct{ Detail string }
		_ = json.Unmarshal(w.Body.Bytes(), &p)
		return w.Code, p.Detail
	}
	const who = "rule=login&subject=192.0.2.1"
	for _, c := range []struct{ method, target, kind, body, want string }{
		{"POST", "/override?" + who + "&rate=5/30d&form=1h", "", "", `parameter "form": unknown: want one of rule, limit, subject, rate, burst, for`},
		{"POST", "/override?" + who + "&rate=5/30d&burts=99", "", "", `parameter "burts": unknown: want one of rule, limit, subject, rate, burst, for`},
		{"POST", "/override?" + who + "&rate=5/30d&for=", "", "", "for: empty: give it a value, or leave it out"},
		{"POST", "/override?" + who + "&rate=5/30d&for=1ns", "", "", "for: want a duration of at least 5s, such as 30m"},
		{"POST", "/override?" + who + "&rate=5/30d&for=1h&for=2h", "", "", "for: given 2 times: want it once"},
		{"POST", "/override?" + who + "&rate=5/30d", form, "rate=6/30d", "rate: given 2 times: want it once"},
		{"POST", "/override", "application/json", `{"rule":"login"}`, "Content-Type: want application/x-www-form-urlencoded, or no body and parameters in the query"},
		{"POST", "/override", form, who + "&rate=" + strings.Repeat("9", 64<<10), "body: too long: want at most 65536 bytes"},
		{"POST", "/override", form, who + "&rate=%zz", "body: can't be read: want NAME=VALUE with & between, percent-encoded"},
		{"POST", "/override", "", "", "rule: missing"},
		{"DELETE", "/override", form, who, "body: DELETE has none: want parameters in the query"},
		{"DELETE", "/override?" + who + "&rate=5/30d", "", "", `parameter "rate": unknown: want one of rule, limit, subject`},
		{"POST", "/reset?" + who + "&limt=key", "", "", `parameter "limt": unknown: want one of rule, limit, subject`},
		{"POST", "/reset?rule=login&subject=", "", "", "subject: empty: give it a value, or leave it out"},
		{"GET", "/explain?pth=/login", "", "", `parameter "pth": unknown: want one of path, method, ip, header, cost`},
		{"GET", "/explain?path=/login&ip=", "", "", "ip: empty: give it a value, or leave it out"},
		{"GET", "/explain?path=/login&path=/", "", "", "path: given 2 times: want it once"},
		{"GET", "/explain?path=/login;x&ip=1", "", "", "query: can't be read: want NAME=VALUE with & between, percent-encoded"},
	} {
		if status, detail := send(c.method, c.target, c.kind, c.body); status != 400 || detail != c.want {
			t.Errorf("%s %s: %d %q, want 400 %q", c.method, c.target, status, detail, c.want)
		}
	}
	if status, detail := send("POST", "/reset", form, who); status != 200 {
		t.Errorf("parameters in a form: %d %q", status, detail)
	}
	if status, detail := send("GET", "/explain?path=/api&header=X-A:1&header=X-B:2", "", ""); status != 200 {
		t.Errorf("two headers: %d %q", status, detail)
	}
}

// A token that a file ends with a newline is the token without it, and the scheme has no case.
func TestAdminToken(t *testing.T) {
	o := operate(t, operated, gateway.AdminOptions{Token: token + "\n"})
	for sent, want := range map[string]int{
		"Bearer " + token: 200, "bearer " + token: 200, "BEARER  " + token: 200,
		token: 401, "Basic " + token: 401, "Bearer": 401, "Bearer ": 401, "Bearer " + token + "x": 401, "": 401,
	} {
		r := httptest.NewRequest("POST", "/reset?rule=login&subject=192.0.2.1", nil)
		r.Header.Set("Authorization", sent)
		w := httptest.NewRecorder()
		if o.admin.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", sent, w.Code, want)
		}
	}
	if _, err := gateway.Admin(o.limits, gateway.AdminOptions{Eyes: o.eyes, Token: "  short enough  "}); err == nil {
		t.Error("a token of 12 bytes and spaces is accepted")
	}
}

// On localhost a name that is not its own is that of a web page which rebinds it.
func TestAdminHost(t *testing.T) {
	o := operate(t, operated, gateway.AdminOptions{})
	own := []string{"localhost", "localhost.:9180", "LOCALHOST:9180", "127.0.0.1", "127.0.0.1:9180", "[::1]:9180", "[::1]", "192.0.2.1:80", ""}
	others := []string{"evil.example", "evil.example:9180", "localhost.evil.example", "sluice", "127.0.0.1.evil.example:80", "1.1.1.1.", "evil.localhost"}
	for _, c := range []struct {
		local net.Addr
		hosts []string
		want  int
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9180}, own, 200}, {&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9180}, others, 421},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 9180}, own, 200}, {&net.TCPAddr{IP: net.IPv6loopback, Port: 9180}, others, 421},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 9180}, append(own, others...), 200}, {&net.UnixAddr{Name: "@"}, others, 200},
	} {
		for _, host := range c.hosts {
			r := httptest.NewRequest("GET", "/explain", nil)
			r.Host = host
			w := httptest.NewRecorder()
			o.admin.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, c.local)))
			if w.Code != c.want {
				t.Errorf("Host %q on %v: %d, want %d", host, c.local, w.Code, c.want)
			}
		}
	}
	server := httptest.NewServer(o.admin) // a real connection has its address
	defer server.Close()
	for host, want := range map[string]int{"": 200, "evil.example": 421} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/top", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host, req.Close = host, true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("Host %q: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

// What was denied shows in /top, hashed; with the token an operator lets the subject go on.
func TestAdminTopAndReset(t *testing.T) {
	o := operate(t, operated, gateway.AdminOptions{Token: token})
	for range 5 {
		o.request("/login", "192.0.2.1", "")
	}
	_, body := o.ask("GET", "/top", "")
	want := fmt.Sprintf("[map[denied:3 limit:login subject:%s too_many_by_most:0]]", gateway.HashSubject("192.0.2.1"))
	if got := fmt.Sprint(body["denied"]); got != want {
		t.Errorf("/top: %s, want %s", got, want)
	}
	for _, c := range []struct {
		target, token string
		want          int
	}{
		{"/reset?rule=login&subject=192.0.2.1", "", 401}, {"/reset?rule=login&subject=192.0.2.1", "wrong horse battery!!", 401},
		{"/reset?rule=none&subject=192.0.2.1", token, 400}, {"/reset?rule=login&limit=none&subject=192.0.2.1", token, 400},
		{"/reset?rule=login&subject=nobody", token, 400}, {"/reset?rule=api&subject=x", token, 400}, // two limits: which?
		{"/override?rule=login&subject=192.0.2.1&rate=5/30d", token, 409}, // in process
		{"/override?rule=login&subject=192.0.2.1&rate=lots", token, 400},
	} {
		if status, body := o.ask("POST", c.target, c.token); status != c.want {
			t.Errorf("POST %s: %d %v, want %d", c.target, status, body, c.want)
		}
	}
	if got := o.request("/login", "192.0.2.1", ""); got != 429 {
		t.Errorf("status %d before the reset, want 429", got)
	}
	if status, body := o.ask("POST", "/reset?rule=login&subject=192.0.2.1", token); status != 200 {
		t.Errorf("reset: %d %v", status, body)
	}
	if got := o.request("/login", "192.0.2.1", ""); got != 200 {
		t.Errorf("status %d after the reset, want 200", got)
	}
	o.request("/api", "192.0.2.1", "secret")
	if status, _ := o.ask("POST", "/reset?rule=api&limit=key&subject=secret", token); status != 200 || o.request("/api", "192.0.2.1", "secret") != 200 {
		t.Errorf("reset of a key: %d", status)
	}
}

// /explain answers by what this process has counted, charges nothing, and shows no secret.
func TestAdminExplain(t *testing.T) {
	o := operate(t, operated, gateway.AdminOptions{})
	explain := func(query string) (int, string, map[string]any) {
		status, body := o.ask("GET", "/explain?"+query, "")
		text, _ := json.Marshal(body)
		return status, string(text), body
	}
	for range 3 {
		if _, text, body := explain("path=/login&ip=192.0.2.1"); body["passes"] != true || !strings.Contains(text, `"remaining":2`) {
			t.Errorf("at first: %s", text)
		}
	}
	o.request("/login", "192.0.2.1", "")
	o.request("/login", "192.0.2.1", "")
	if _, text, body := explain("path=/login&ip=192.0.2.1"); body["passes"] != false || !strings.Contains(text, `"retry_after_s":`) || !strings.Contains(text, gateway.HashSubject("192.0.2.1")) {
		t.Errorf("used up: %s", text)
	}
	if _, text, body := explain("path=/login&ip=192.0.2.2&cost=3"); body["passes"] != false {
		t.Errorf("a cost above the limit: %s", text)
	}
	if _, text, body := explain("path=/free"); body["passes"] != true || body["note"] == nil {
		t.Errorf("no rule: %s", text)
	}
	if status, text, _ := explain("path=/api&header=" + url.QueryEscape("X-API-Key: hunter2")); status != 200 || strings.Contains(text, "hunter2") {
		t.Errorf("%d: %s", status, text)
	}
	o = operate(t, "mode: local"+operated, gateway.AdminOptions{})
	const note = "mode is local: each process decides on its own buckets, and these are this one's"
	if _, text, body := explain("path=/login&ip=192.0.2.1"); body["note"] != note || !strings.Contains(text, `"source":"local"`) {
		t.Errorf("mode: local: %s, want the note %q", text, note)
	}
	for _, query := range []string{"path=x", "ip=nowhere", "method=A+B", "cost=-1", "cost=x", "header=hunter2"} {
		if status, text, _ := explain(query); status != 400 || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %d %s, want 400", query, status, text)
		}
	}
}

// Redis away: ready all the same, and degraded; back, and it is not degraded any more.
func TestReadyWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	store := fmt.Sprintf("store: {redis: 'redis://%s', timeout: 1s}\nfailover: {instances: 1, open_for: 50ms, trip_after: 1}", server.Addr)
	o := operate(t, store+operated, gateway.AdminOptions{Token: token})
	o.eyes.SetReady(true)
	await := func(when string, degraded bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			o.request("/login", "192.0.2.1", "")
			status, body := o.ask("GET", "/readyz", "")
			if status != 200 || body["ready"] != true {
				t.Fatalf("%s: %d %v, want 200", when, status, body)
			}
			if body["degraded"] == degraded {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v, want degraded %v", when, body, degraded)
			}
		}
	}
	await("at first", false)
	if status, body := o.ask("POST", "/override?rule=login&subject=192.0.2.7&rate=6/30d", token); status != 200 || body["until"] != nil {
		t.Errorf("override for good: %d %v", status, body)
	}
	status, body := o.ask("POST", "/override?rule=login&subject=192.0.2.7&rate=5/30d&for=1h", token)
	if until, err := time.Parse(time.RFC3339, fmt.Sprint(body["until"])); status != 200 || err != nil || time.Until(until).Round(time.Hour) != time.Hour {
		t.Errorf("override: %d %v, want its end in an hour", status, body)
	}
	list, err := server.Client().HLen(t.Context(), "sluice:{overrides}").Result()
	if err != nil || list != 1 {
		t.Errorf("%d overrides in Redis (%v), want 1", list, err)
	}
	if status, body := o.ask("DELETE", "/override?rule=login&subject=192.0.2.7", token); status != 200 {
		t.Errorf("clear: %d %v", status, body)
	}
	server.Kill()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, body := o.ask("GET", "/explain?path=/login&ip=192.0.2.1", ""); strings.Contains(fmt.Sprint(body), "source:local") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("Redis has gone and is asked all the same")
		}
	}
	o.request("/login", "192.0.2.1", "")
	if status, body := o.ask("GET", "/readyz", ""); status != 200 || body["degraded"] != true {
		t.Errorf("after Redis has gone: %d %v, want 200 and degraded", status, body)
	}
	if status, _ := o.ask("POST", "/override?rule=login&subject=192.0.2.7&rate=5/30d", token); status != 502 {
		t.Errorf("override without Redis: %d, want 502", status)
	}
	server.Restart()
	await("after Redis is back", false)
}

// Redis killed under load takes no process out of service: /readyz is 200 on each, all the time, and no request fails.
func TestReadyUnderLoad(t *testing.T) {
	server := redistest.Start(t)
	store := fmt.Sprintf("store: {redis: 'redis://%s', timeout: 100ms}\nfailover: {open_for: 50ms, instances: 3}", server.Addr)
	ctx, stop := context.WithCancel(t.Context())
	var loading sync.WaitGroup
	var asked atomic.Int64
	for i := range 3 {
		o := operate(t, store+operated, gateway.AdminOptions{})
		o.eyes.SetReady(true)
		for j := range 4 {
			loading.Go(func() {
				for ctx.Err() == nil {
					if got := o.request("/login", fmt.Sprintf("192.0.2.%d", j), ""); got != 200 && got != 429 {
						t.Errorf("instance %d: a request gets %d", i, got)
						return
					}
				}
			})
		}
		loading.Go(func() {
			for ctx.Err() == nil {
				if status, body := o.ask("GET", "/readyz", ""); status != 200 {
					t.Errorf("instance %d: /readyz: %d %v", i, status, body)
					return
				}
				asked.Add(1)
				time.Sleep(time.Millisecond)
			}
		})
	}
	for _, change := range []func(){func() {}, server.Kill, server.Restart, server.Stop, server.Cont} {
		change()
		time.Sleep(300 * time.Millisecond) // of load in each state
	}
	stop()
	loading.Wait()
	if asked.Load() == 0 {
		t.Error("/readyz was never asked")
	}
}
