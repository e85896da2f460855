package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	if status, body := o.ask("POST", "/override?rule=login&subject=192.0.2.7&rate=5/30d&for=1h", token); status != 200 {
		t.Errorf("override: %d %v", status, body)
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
