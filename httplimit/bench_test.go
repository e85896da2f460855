package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// quiet is a ResponseWriter that costs next to nothing.
type quiet struct{ h http.Header }

func (q quiet) Header() http.Header         { return q.h }
func (q quiet) Write(b []byte) (int, error) { return len(b), nil }
func (q quiet) WriteHeader(int)             {}

// plainRules have none of the rarer fields.
func plainRules(t testing.TB) http.Handler {
	config := policy.Config{Rules: []policy.RuleConfig{
		{Name: "one", Match: "/one", Limits: []policy.LimitConfig{
			{Algorithm: "token_bucket", Limit: sluice.Limit{Count: 1e9, Period: 1e9, Burst: 1e9}, Subject: "ip"},
		}},
		{Name: "two", Match: "/two", Limits: []policy.LimitConfig{
			{Algorithm: "token_bucket", Limit: sluice.Limit{Count: 1e9, Period: 1e9, Burst: 1e9}, Subject: "ip"},
			{Algorithm: "fixed_window", Limit: sluice.Limit{Count: 1e9, Period: 1e9}, Subject: "global"},
		}},
	}}
	rules, err := policy.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(local.New(local.Options{}))}).
		Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// A request that plain rules let pass costs no more allocations than it did before there were costs, lists, overrides
// and shadows: most are the header's fields and the subject's text.
func TestWrapAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	h, w := plainRules(t), quiet{http.Header{}}
	for path, most := range map[string]float64{"/one": 13, "/two": 16, "/none": 0} {
		r := httptest.NewRequest("GET", path, nil)
		if got := testing.AllocsPerRun(1000, func() { clear(w.h); h.ServeHTTP(w, r) }); got > most {
			t.Errorf("%s: %v allocations, want at most %v", path, got, most)
		}
	}
}

// BenchmarkWrap is a request that plain rules let pass.
func BenchmarkWrap(b *testing.B) {
	h := plainRules(b)
	for _, path := range []string{"/one", "/two", "/none"} {
		b.Run(path[1:], func(b *testing.B) {
			r := httptest.NewRequest("GET", path, nil)
			w := quiet{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.h)
				h.ServeHTTP(w, r)
			}
		})
	}
}
