package policy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// A CONNECT is counted by the rule of the pattern that serves it, whose path ServeMux does not clean.
func TestConnectIsNotCleaned(t *testing.T) {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{
		Name: "api", Match: "/api/",
		Limits: []policy.LimitConfig{{Algorithm: "fixed_window", Limit: sluice.Limit{Count: 1, Period: time.Second}, Subject: "ip"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", func(http.ResponseWriter, *http.Request) {})
	for _, path := range []string{"/api/../x", "/api/x", "/x/../api/y", "//api/"} {
		for _, method := range []string{http.MethodConnect, http.MethodGet} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Method = method
			_, served := mux.Handler(r)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code == http.StatusOK && served == "/api/" && rules.Match(r) == nil {
				t.Errorf("%s %s is served by %s and counted by no rule", method, path, served)
			}
		}
	}
}
