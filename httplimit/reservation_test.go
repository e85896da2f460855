package httplimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// ledger is a store that keeps a list of what it was asked.
type ledger struct {
	sluice.Store
	mu   sync.Mutex
	asks []sluice.Ask
	fail bool // settlements fail
}

func (l *ledger) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	l.mu.Lock()
	l.asks = append(l.asks, a)
	l.mu.Unlock()
	if l.fail && a.Mode == sluice.Settle {
		return sluice.Decision{}, sluice.ErrUnavailable
	}
	return l.Store.Take(ctx, a)
}

// settled are the settlements of a key's rule, in order.
func (l *ledger) settled(rule string) (n []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.asks {
		if a.Mode == sluice.Settle && a.Key.Rule == rule {
			n = append(n, a.N)
		}
	}
	return n
}

func settling(t *testing.T) *policy.Rules {
	return newRules(t, policy.RuleConfig{
		Name: "r", Match: "/", Cost: policy.CostConfig{Default: 5, Max: 20}, Settle: "response:X-Actual-Cost",
		Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip")},
	})
}

func TestSettle(t *testing.T) {
	set := func(lines ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.Header()["X-Actual-Cost"] = lines }
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		left    int64 // of 100
	}{
		"silent":         {func(http.ResponseWriter, *http.Request) {}, 95},
		"less":           {set("2"), 98},
		"nothing":        {set("0"), 100},
		"the same":       {set("5"), 95},
		"more":           {set("17"), 83},
		"above max":      {set("1000000000000000000000"), 80},
		"negative":       {set("-100"), 95},
		"exponent":       {set("1e1"), 95},
		"twice":          {set("1", "1"), 95},
		"empty":          {set(""), 95},
		"header, body":   {func(w http.ResponseWriter, r *http.Request) { set("7")(w, r); fmt.Fprint(w, "body") }, 93},
		"after the body": {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "body"); set("7")(w, r) }, 93},
		"streamed, announced trailer": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Actual-Cost")
			for range 3 {
				fmt.Fprintln(w, "part")
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
			}
			w.Header().Set("X-Actual-Cost", "7")
		}, 93},
		"streamed, trailer": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "part")
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Actual-Cost", "7")
		}, 93},
		"panics":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 95},
		"panics afterwards": {func(w http.ResponseWriter, r *http.Request) { set("7")(w, r); panic(http.ErrAbortHandler) }, 93},
	} {
		t.Run(name, func(t *testing.T) {
			store := newStore(newClock())
			srv := httptest.NewServer(wrap(settling(t), store, tt.handler))
			defer srv.Close()
			resp, err := srv.Client().Get(srv.URL)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			srv.Close() // waits for the handler
			asks := settling(t).All()[0].Asks(httptest.NewRequest("GET", "/", nil), 0)
			asks[0].Key.Subject, asks[0].Mode = "127.0.0.1", sluice.Peek
			d, err := store.Take(t.Context(), asks[0])
			if err != nil || d.Remaining != tt.left {
				t.Errorf("%d left, %v, want %d", d.Remaining, err, tt.left)
			}
		})
	}
}

// Each limit of the rule is settled, in the store that charged, once; those of a rule without settle are left alone.
func TestSettleEachLimit(t *testing.T) {
	shadow := limit(t, "fixed_window", "50/h", "ip")
	shadow.Name, shadow.Shadow = "next", true
	rules := newRules(t,
		policy.RuleConfig{Name: "all", Match: "always", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "global")}},
		policy.RuleConfig{Name: "r", Match: "/", OnOutage: policy.Deny, Cost: policy.CostConfig{Max: 20}, Settle: "response:X-Actual-Cost", Limits: []policy.LimitConfig{
			limit(t, "fixed_window", "100/h", "ip"), limit(t, "token_bucket", "100/h", "global"), shadow,
		}},
	)
	here, other := &ledger{Store: newStore(newClock())}, &ledger{Store: newStore(newClock())}
	stores := map[policy.OnOutage]sluice.Store{policy.Deny: here, policy.Local: other, policy.Allow: other}
	m := httplimit.New(httplimit.Options{Rules: rules, Stores: stores})
	get(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Actual-Cost", "9") })), "/")
	for rule, want := range map[string]string{"r/fixed_window-ip": "[8]", "r/token_bucket-global": "[8]", "r/next": "[8]", "all": "[]"} {
		if got := fmt.Sprint(here.settled(rule)); got != want {
			t.Errorf("%s: settled %s, want %s", rule, got, want)
		}
	}
	if len(other.asks) != 0 {
		t.Errorf("another store was asked %v", other.asks)
	}

	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	res, ok := m.Reserve(w, r)
	if !ok || res == nil {
		t.Fatalf("Reserve: %v, %v, want a reservation", res, ok)
	}
	h := http.Header{"X-Actual-Cost": {"0"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as a request's is that has ended
	for range 3 {
		if err := res.Settle(ctx, h); err != nil {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(here.settled("r/fixed_window-ip")); got != "[8 -1]" {
		t.Errorf("settled %s, want [8 -1]: once each", got)
	}
	if err := (*httplimit.Reservation)(nil).Settle(ctx, h); err != nil {
		t.Errorf("nil: %v", err)
	}

	here.fail = true
	res, _ = m.Reserve(w, r)
	if err := res.Settle(t.Context(), h); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("got %v, want the store's error", err)
	}
	wantStatus(t, get(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Actual-Cost", "9") })), "/"), 200)
}

// Charges are found with the rule that they belong to, whatever rules stand before it.
func TestSettleRuleBehindOthers(t *testing.T) {
	rules := newRules(t,
		policy.RuleConfig{Name: "first", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "ip"), limit(t, "fixed_window", "100/h", "global")}},
		policy.RuleConfig{Name: "all", Match: "always", Cost: policy.CostConfig{Default: 3, Max: 20}, Settle: "response:X-Actual-Cost", Limits: []policy.LimitConfig{limit(t, "fixed_window", "100/h", "global")}},
	)
	store := &ledger{Store: newStore(newClock())}
	get(wrap(rules, store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Actual-Cost", "9") })), "/")
	for rule, want := range map[string]string{"first/fixed_window-ip": "[]", "first/fixed_window-global": "[]", "all": "[6]"} {
		if got := fmt.Sprint(store.settled(rule)); got != want {
			t.Errorf("%s: settled %s, want %s", rule, got, want)
		}
	}
}

// What was not charged is not given back: a refused request, a fail-open store.
func TestNothingToSettle(t *testing.T) {
	assumed := &ledger{Store: sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{Allowed: true, Source: sluice.Assumed, Charged: 5}, nil
	})}
	m := httplimit.New(httplimit.Options{Rules: settling(t), Stores: everywhere(assumed)})
	if res, ok := m.Reserve(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); res != nil || !ok {
		t.Errorf("fail-open: %v, %v, want nothing to settle", res, ok)
	}
	full := &ledger{Store: newStore(newClock())}
	m = httplimit.New(httplimit.Options{Rules: settling(t), Stores: everywhere(full)})
	for range 20 {
		wantStatus(t, get(m.Wrap(&counter{}), "/"), 200)
	}
	if res, ok := m.Reserve(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); res != nil || ok {
		t.Errorf("refused: %v, %v, want nothing to settle", res, ok)
	}
}

// The response streams: each part arrives before the handler has returned, and the settlement comes after.
func TestSettleStreams(t *testing.T) {
	store := &ledger{Store: newStore(newClock())}
	next := make(chan struct{})
	srv := httptest.NewServer(wrap(settling(t), store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		for i := range 3 {
			fmt.Fprintln(w, i)
			if err := rc.Flush(); err != nil {
				t.Error(err)
			}
			<-next
		}
		w.Header().Set(http.TrailerPrefix+"X-Actual-Cost", "1")
	})))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for i := range 3 {
		if got, err := lines.ReadString('\n'); err != nil || got != fmt.Sprintln(i) {
			t.Fatalf("part %d: %q, %v", i, got, err)
		}
		if n := store.settled("r"); n != nil {
			t.Errorf("part %d: settled %v before the end", i, n)
		}
		next <- struct{}{}
	}
	if _, err := lines.ReadString('\n'); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
	if got := resp.Trailer.Get("X-Actual-Cost"); got != "1" {
		t.Errorf("trailer %q, want 1", got)
	}
	if got := fmt.Sprint(store.settled("r")); got != "[-4]" {
		t.Errorf("settled %s, want [-4]", got)
	}
}

// Behind a reverse proxy the upstream's header or trailer settles, also where the client hangs up.
func TestSettleBehindProxy(t *testing.T) {
	for name, tt := range map[string]struct {
		upstream http.HandlerFunc
		settled  string
	}{
		"header": {func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X-Actual-Cost", "9") }, "[4]"},
		"trailer": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Actual-Cost")
			fmt.Fprint(w, "x")
			w.Header().Set("X-Actual-Cost", "9")
		}, "[4]"},
		"unannounced trailer": {func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Actual-Cost", "9")
		}, "[4]"},
		"breaks off": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Actual-Cost", "20")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "[15]"},
	} {
		t.Run(name, func(t *testing.T) {
			up := httptest.NewServer(tt.upstream)
			defer up.Close()
			target, err := url.Parse(up.URL)
			if err != nil {
				t.Fatal(err)
			}
			store := &ledger{Store: newStore(newClock())}
			front := httptest.NewServer(wrap(settling(t), store, httputil.NewSingleHostReverseProxy(target)))
			defer front.Close()
			resp, err := front.Client().Get(front.URL)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			front.Close()
			if got := fmt.Sprint(store.settled("r")); got != tt.settled {
				t.Errorf("settled %s, want %s", got, tt.settled)
			}
		})
	}
}

// The cost is the number that a trusted proxy sends, and a stranger's word changes nothing.
func TestCostOfRequests(t *testing.T) {
	c := policy.Config{Rules: []policy.RuleConfig{{
		Name: "r", Match: "/", Cost: policy.CostConfig{Header: "X-Cost", Default: 2, Min: 1, Max: 10}, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1000/h", "global")},
	}}}
	c.TrustedProxies = append(c.TrustedProxies, sluice.Must(prefix("10.0.0.0/8")))
	rules := sluice.Must(policy.New(c))
	left := int64(1000)
	h := wrap(rules, newStore(newClock()), &counter{})
	for _, tt := range []struct {
		peer, cost string
		charged    int64
	}{
		{"10.0.0.1:1", "7", 7}, {"10.0.0.1:1", "1", 1}, {"10.0.0.1:1", "99", 10}, {"10.0.0.1:1", "0", 2}, {"10.0.0.1:1", "-1", 2},
		{"10.0.0.1:1", "1e30", 2}, {"10.0.0.1:1", "0x1", 2}, {"192.0.2.1:1", "1", 2}, {"192.0.2.1:1", "7", 2},
	} {
		left -= tt.charged
		resp := get(h, "/", from(tt.peer), with("X-Cost", tt.cost))
		if got := resp.Header.Get("RateLimit"); !strings.Contains(got, fmt.Sprintf(";r=%d;", left)) {
			t.Errorf("X-Cost %s from %s: %s, want %d left", tt.cost, tt.peer, got, left)
		}
	}
}
