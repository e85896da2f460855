package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// Five a minute for each client, ten at once.
func ExampleLimit() {
	limit := sluice.Limit{Count: 5, Period: time.Minute, Burst: 10}
	login := sluice.New(local.New(local.Options{}), sluice.Must(tokenbucket.New(limit)), "login")

	handler := httplimit.Limit(login, policy.IP())(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "welcome")
	}))

	for range 11 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
		if w.Code == http.StatusTooManyRequests {
			fmt.Println(w.Code, "retry after", w.Header().Get("Retry-After"), "s")
			fmt.Println(w.Header().Get("RateLimit-Policy"))
		}
	}
	// Output:
	// 429 retry after 12 s
	// "login";q=5;w=60
}

// A chain as routers of chi's kind build it: each middleware is a func(http.Handler) http.Handler.
func ExampleLimit_chain() {
	store := local.New(local.Options{})
	perDay := sluice.Must(fixedwindow.New(sluice.Limit{Count: 1000, Period: 24 * time.Hour}))
	perSecond := sluice.Must(tokenbucket.New(sluice.Limit{Count: 10, Period: time.Second, Burst: 10}))

	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	chain := []func(http.Handler) http.Handler{ // with chi: router.Use(chain...)
		httplimit.Limit(sluice.New(store, perSecond, "clients"), policy.IP()),
		httplimit.Limit(sluice.New(store, perDay, "keys"), policy.Header("X-API-Key")),
	}
	for i := len(chain) - 1; i >= 0; i-- {
		handler = chain[i](handler)
	}

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Body)
	for _, quota := range w.Header().Values("RateLimit-Policy") {
		fmt.Println(quota)
	}
	// Output:
	// hello
	// "clients";q=10;w=1
	// "keys";q=1000;w=86400
}

// Rules in code: what a rule file says, without one. All limits that hold on a request are charged, or none.
func ExampleNew() {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{
		Name:     "login",
		Match:    "POST /login",
		OnOutage: policy.Deny,
		Denial:   policy.Denial{Type: "text/plain", Body: "later, please"},
		Limits: []policy.LimitConfig{
			{Algorithm: "token_bucket", Limit: sluice.Limit{Count: 5, Period: time.Minute, Burst: 1}, Subject: "ip"},
			{Algorithm: "fixed_window", Limit: sluice.Limit{Count: 1000, Period: time.Hour}, Subject: "global"},
		},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := httplimit.New(httplimit.Options{
		Rules:  rules,
		Stores: map[policy.OnOutage]sluice.Store{policy.Deny: local.New(local.Options{})},
	})
	handler := limits.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "welcome") }))

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("POST", "/login", nil))
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 welcome
	// 429 later, please
}

// Deny answers for a handler that asks its limiter itself, here with a cost of its own.
func ExampleDeny() {
	limit := sluice.Limit{Count: 100, Period: time.Minute, Burst: 100}
	exports := sluice.New(local.New(local.Options{}), sluice.Must(tokenbucket.New(limit)), "exports")

	handler := func(w http.ResponseWriter, r *http.Request) {
		d, err := exports.AllowN(r.Context(), r.Header.Get("X-Tenant"), 80)
		switch {
		case err != nil:
			http.Error(w, "try later", http.StatusServiceUnavailable)
			return
		case !d.Allowed:
			httplimit.Deny(w, d)
			return
		}
		if d.Hold(r.Context()) != nil {
			return // the client has gone
		}
		fmt.Fprint(w, "exported")
	}

	for range 2 {
		w := httptest.NewRecorder()
		handler(w, httptest.NewRequest("GET", "/export", nil))
		fmt.Printf("%d, Retry-After %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, Retry-After ""
	// 429, Retry-After "36"
}

// A handler says what a request cost after all: the estimate is corrected once it has returned.
func ExampleMiddleware_Serve() {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{
		Name: "search", Match: "/search",
		Cost:   policy.CostConfig{Default: 10, Max: 50},
		Settle: "response:X-Actual-Cost",
		Limits: []policy.LimitConfig{{Algorithm: "token_bucket", Limit: sluice.Limit{Count: 100, Period: time.Hour, Burst: 100}, Subject: "ip"}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	store := local.New(local.Options{})
	limits := httplimit.New(httplimit.Options{Rules: rules, Stores: map[policy.OnOutage]sluice.Store{policy.Local: store}})
	search := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Actual-Cost", "3")
	})

	for range 2 {
		w := httptest.NewRecorder()
		limits.Serve(w, httptest.NewRequest("GET", "/search", nil), search)
		left, _, _ := strings.Cut(w.Header().Get("RateLimit"), ";t=")
		fmt.Println(left)
	}
	// Output:
	// "search";r=90
	// "search";r=87
}
