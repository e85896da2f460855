package routers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// build is one of the package's functions.
type build func(*httplimit.Middleware, *sluice.Limiter) http.Handler

// limited returns a router under rules that let n requests an hour pass for each route, logins by the route's own limit.
func limited(n int64, router build) http.Handler {
	hourly := sluice.Limit{Count: n, Period: time.Hour, Burst: n}
	rule := func(name, match string) policy.RuleConfig {
		return policy.RuleConfig{Name: name, Match: match, Limits: []policy.LimitConfig{{Algorithm: "token_bucket", Limit: hourly, Subject: "ip"}}}
	}
	rules := sluice.Must(policy.New(policy.Config{Rules: []policy.RuleConfig{
		rule("users", "/users/"), rule("files", "/files/"), rule("events", "/events"),
	}}))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := local.New(local.Options{Clock: func() time.Time { return start }})
	return router(
		httplimit.New(httplimit.Options{Rules: rules, Stores: map[policy.OnOutage]sluice.Store{policy.Local: store}}),
		sluice.New(store, sluice.Must(tokenbucket.New(hourly)), "logins"),
	)
}

// send sends a request whose path is as a client wrote it.
func send(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "http://shop.example"+target, nil))
	return w
}

// show sends three requests for one user and prints the answers.
func show(h http.Handler) {
	for _, path := range []string{"/users/7", "/users/8", "/users/9"} {
		w := send(h, "GET", path)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
		if w.Code == http.StatusOK {
			fmt.Println(w.Body)
		}
	}
}

// testRouter holds for each of the routers.
func testRouter(t *testing.T, router build) {
	t.Run("denial", func(t *testing.T) { testDenial(t, router) })
	t.Run("aliases share a bucket", func(t *testing.T) { testAliases(t, router) })
	t.Run("what is served is counted", func(t *testing.T) { testCounted(t, router) })
	t.Run("streams", func(t *testing.T) { testStream(t, router) })
}

func testDenial(t *testing.T, router build) {
	h := limited(2, router)
	for _, c := range []struct{ method, path, body, rule string }{
		{"GET", "/users/7", "user 7", "users"}, {"GET", "/files/x/y", "file ", "files"}, {"POST", "/login", "welcome", "logins"},
	} {
		for i := range 2 {
			w := send(h, c.method, c.path)
			if w.Code != 200 || !strings.HasPrefix(w.Body.String(), c.body) {
				t.Errorf("%s: %d %q, want 200 and %q", c.path, w.Code, w.Body, c.body)
			}
			if got, want := w.Header().Get("RateLimit"), fmt.Sprintf(`"%s";r=%d;t=%d`, c.rule, 1-i, 1800*(i+1)); got != want {
				t.Errorf("%s: RateLimit %s, want %s", c.path, got, want)
			}
		}
		w := send(h, c.method, c.path)
		want := http.Header{
			"Ratelimit-Policy": {fmt.Sprintf(`"%s";q=2;w=3600`, c.rule)}, "Ratelimit": {fmt.Sprintf(`"%s";r=0;t=1800`, c.rule)},
			"Retry-After": {"1800"}, "Cache-Control": {"no-store"}, "Content-Type": {"application/problem+json"},
		}
		for name, lines := range want {
			if got := w.Header().Get(name); got != lines[0] {
				t.Errorf("%s, denied: %s %q, want %q", c.path, name, got, lines[0])
			}
		}
		var problem struct{ Status int }
		if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem.Status != 429 || w.Code != 429 {
			t.Errorf("%s, denied: %d %q, %v: want 429, a problem and nothing else", c.path, w.Code, w.Body, err)
		}
	}
	if w := send(h, "GET", "/nowhere"); w.Code != 404 || w.Header().Get("RateLimit") != "" {
		t.Errorf("a path of no route: %d, RateLimit %q", w.Code, w.Header().Get("RateLimit"))
	}
}

func testAliases(t *testing.T, router build) {
	h := limited(3, router)
	served, redirected := 0, 0
	aliases := []string{"/users/7", "/users/%37", "/users//7", "/users/./7", "/x/../users/7", "//users/7", "/%75sers/7", "/users/7?x=1", "/users%2F7", "/users/7/../8"}
	for _, alias := range aliases {
		for range 2 {
			switch w := send(h, "GET", alias); w.Code {
			case 200:
				served++
			case 301, 307, 308:
				redirected++
				if to := w.Header().Get("Location"); !strings.HasPrefix(to, "/users/") {
					t.Errorf("%s is sent to %s", alias, to)
				}
			case 404, 429:
			default:
				t.Errorf("%s: %d", alias, w.Code)
			}
		}
	}
	if served != 3 || redirected < 8 {
		t.Errorf("%d requests were served and %d redirected: want 3, whatever the path, and the unclean ones", served, redirected)
	}
}

// Whatever a client writes: what a route serves, its rule has counted.
func testCounted(t *testing.T, router build) {
	h := limited(1_000_000_000, router)
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"users", "%75sers", "files", "%66iles", "login", "7", "%37", "", ".", "..", "%2e", "%2e%2e", "%2F", "users%2F7", "x", "a%20b", "Users", "login;x", "%00"}
	count := map[string]int{}
	for range 30_000 {
		var path strings.Builder
		for range 1 + random.IntN(3) {
			path.WriteString("/" + parts[random.IntN(len(parts))])
		}
		if random.IntN(4) == 0 {
			path.WriteString("/")
		}
		method := []string{"GET", "POST", "HEAD", "PUT", "OPTIONS", "CONNECT"}[random.IntN(6)]
		r := httptest.NewRequest(method, "/", nil)
		u, err := url.ParseRequestURI(path.String())
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			continue
		}
		route, _, _ := strings.Cut(w.Body.String(), " ")
		rule := map[string]string{"user": "users", "file": "files", "welcome": "logins"}[route]
		if rule == "" && method == "HEAD" {
			continue
		}
		count[route]++
		if got := w.Header().Get("RateLimit-Policy"); !strings.HasPrefix(got, `"`+rule+`";`) {
			t.Errorf("%s %s is served as %q and counted as %q", method, path.String(), w.Body, got)
		}
	}
	if len(count) != 3 || count["user"] < 50 || count["file"] < 50 || count["welcome"] < 50 {
		t.Errorf("%v were served: the test hardly tries them", count)
	}
}

func testStream(t *testing.T, router build) {
	srv := httptest.NewServer(limited(2, router))
	defer srv.Close()
	for range 2 {
		ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
		r, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(resp.Header.Get("RateLimit"), `"events";`) {
			t.Errorf("RateLimit %q", resp.Header.Get("RateLimit"))
		}
		lines := bufio.NewScanner(resp.Body)
		for _, want := range []string{"data: 1", "", "data: 2", ""} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("line %q, %v: want %q while the handler runs", lines.Text(), lines.Err(), want)
			}
		}
		leave()
		resp.Body.Close()
	}
	resp, err := srv.Client().Get(srv.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 429 {
		t.Errorf("the third stream: %d, want 429", resp.StatusCode)
	}
}
