package prom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry"
	"github.com/sluice-go/sluice/telemetry/prom"
)

// bucket has a burst, and regains nothing to speak of.
func bucket(burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: 1000 * time.Hour, Burst: burst}))
}

func rules(t testing.TB, mode policy.Mode) *policy.Rules {
	t.Helper()
	of := func(name string, shadow bool) policy.LimitConfig {
		return policy.LimitConfig{Name: name, Algorithm: "token_bucket", Limit: bucket(1).Limit(), Subject: "ip", Shadow: shadow}
	}
	r, err := policy.New(policy.Config{Mode: mode, Rules: []policy.RuleConfig{
		{Name: "login", Match: "POST /login", Limits: []policy.LimitConfig{of("ip", false), of("next", true)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// scrape returns the lines of sluice's metrics, each without those of the histogram's that times decide.
func scrape(t testing.TB, cs ...prometheus.Collector) map[string]string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, c := range cs {
		if err := reg.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("scrape: %d %s", w.Code, w.Body)
	}
	timed := regexp.MustCompile(`_(bucket|sum)(\{|$)`)
	lines := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, ok := cutLast(strings.TrimSpace(line))
		if ok && !strings.HasPrefix(line, "#") && !timed.MatchString(name) {
			lines[name] = value
		}
	}
	return lines
}

func cutLast(line string) (before, after string, ok bool) {
	at := strings.LastIndexByte(line, ' ')
	if at < 0 {
		return line, "", false
	}
	return line[:at], line[at+1:], true
}

// check compares all lines that begin with a prefix.
func check(t *testing.T, lines map[string]string, prefix string, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if lines[name] != value {
			t.Errorf("%s is %q, want %s", name, lines[name], value)
		}
	}
	for name, value := range lines {
		if _, ok := want[name]; strings.HasPrefix(name, prefix) && !ok {
			t.Errorf("%s %s: not expected", name, value)
		}
	}
}

func TestDecisions(t *testing.T) {
	ctx, m := t.Context(), prom.New(nil)
	st := sluice.Observe(local.New(local.Options{}), m)
	login := sluice.New(st, bucket(3), "login")
	for i := range 10 { // 3 pass
		if _, err := login.Allow(ctx, "a"); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := login.Peek(ctx, "a", 1); err != nil { // no decision
		t.Fatal(err)
	}
	if err := login.Reset(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = login.Allow(gone, "a")
	_, _ = login.AllowN(ctx, "a", -1)
	_, err := sluice.TakeAll(ctx, st, []sluice.Ask{
		sluice.New(st, bucket(9), "api/each").Ask("a", 2),
		sluice.New(st, bucket(1), "api/all").Ask("", 2),
	})
	if err != nil {
		t.Fatal(err)
	}
	failing := sluice.Observe(sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, fmt.Errorf("%w: x", sluice.ErrUnavailable)
	}), m)
	_, _ = failing.Take(ctx, login.Ask("a", 1))
	_, _ = failing.Take(ctx, sluice.Ask{Strategy: bucket(1), Key: sluice.Key{Rule: "\xff", Subject: "\xff"}, N: 1})
	_, _ = st.Take(ctx, sluice.Ask{})

	lines := scrape(t, m)
	check(t, lines, "sluice_decisions_total", map[string]string{
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="allowed",rule="login",source="local"}`:    "3",
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="denied",rule="login",source="local"}`:     "7",
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="cancelled",rule="login",source="none"}`:   "1",
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="failed",rule="login",source="none"}`:      "1",
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="unavailable",rule="login",source="none"}`: "1",

		`sluice_decisions_total{algorithm="token_bucket",limit="each",outcome="allowed",rule="api",source="local"}`:  "0",
		`sluice_decisions_total{algorithm="token_bucket",limit="each",outcome="denied",rule="api",source="local"}`:   "0",
		`sluice_decisions_total{algorithm="token_bucket",limit="each",outcome="withheld",rule="api",source="local"}`: "1",
		`sluice_decisions_total{algorithm="token_bucket",limit="all",outcome="allowed",rule="api",source="local"}`:   "0",
		`sluice_decisions_total{algorithm="token_bucket",limit="all",outcome="denied",rule="api",source="local"}`:    "1",

		"sluice_decisions_total{algorithm=\"token_bucket\",limit=\"\",outcome=\"unavailable\",rule=\"\uFFFD\",source=\"none\"}": "1",
		`sluice_decisions_total{algorithm="",limit="",outcome="failed",rule="",source="none"}`:                                  "1",
	})
	check(t, lines, "sluice_decision_duration_seconds_count", map[string]string{
		`sluice_decision_duration_seconds_count{source="local"}`:   "12",
		`sluice_decision_duration_seconds_count{source="none"}`:    "5",
		`sluice_decision_duration_seconds_count{source="shared"}`:  "0",
		`sluice_decision_duration_seconds_count{source="cached"}`:  "0",
		`sluice_decision_duration_seconds_count{source="assumed"}`: "0",
	})
	for name := range lines {
		if !strings.HasPrefix(name, "sluice_") {
			t.Errorf("%s: a name that does not begin with sluice_", name)
		}
	}
}

func TestShadowsAreCountedApart(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeShadow} {
		t.Run(string(mode), func(t *testing.T) {
			r := rules(t, mode)
			m := prom.New(func() *policy.Rules { return r })
			st := sluice.Observe(local.New(local.Options{}), m)
			for _, name := range []string{"login", "login/next", "login/next"} {
				for range 2 {
					if _, err := sluice.New(st, bucket(1), name).Allow(t.Context(), "a"); err != nil {
						t.Fatal(err)
					}
				}
			}
			decisions := map[string]string{
				`sluice_decisions_total{algorithm="token_bucket",limit="ip",outcome="allowed",rule="login",source="local"}`: "1",
				`sluice_decisions_total{algorithm="token_bucket",limit="ip",outcome="denied",rule="login",source="local"}`:  "1",
			}
			shadows := map[string]string{
				`sluice_shadow_decisions_total{algorithm="token_bucket",limit="next",rule="login",verdict="agree"}`:    "1",
				`sluice_shadow_decisions_total{algorithm="token_bucket",limit="next",rule="login",verdict="disagree"}`: "3",
			}
			if mode == policy.ModeShadow {
				decisions = nil
				shadows[`sluice_shadow_decisions_total{algorithm="token_bucket",limit="ip",rule="login",verdict="agree"}`] = "1"
				shadows[`sluice_shadow_decisions_total{algorithm="token_bucket",limit="ip",rule="login",verdict="disagree"}`] = "1"
			}
			lines := scrape(t, m)
			check(t, lines, "sluice_decisions_total", decisions)
			check(t, lines, "sluice_shadow_decisions_total", shadows)
		})
	}
}

// An outage shows in the source of decisions, and in the breaker.
func TestOutage(t *testing.T) {
	m := prom.New(nil)
	away := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	breaker := failover.New(failover.Options{TripAfter: 2, OpenFor: time.Hour, Instances: 3, OnChange: m.BreakerChanged})
	defer breaker.Close()
	buckets := local.NewBuckets(local.BucketsOptions{Share: breaker.Share, MaxKeys: 1})
	api := sluice.New(sluice.Observe(breaker.Guard(away, buckets), m), bucket(30), "api")
	for i := range 5 {
		if d, err := api.Allow(t.Context(), fmt.Sprint("subject ", i)); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
	}
	p := prom.NewProcess(telemetry.Process{
		Breaker: breaker.State, Share: breaker.Share, Stores: map[string]telemetry.LocalStore{"buckets": buckets},
		Rules: func() telemetry.Rules {
			return telemetry.Rules{Hash: "abc", Mode: "enforce", Count: 4, Loaded: time.Unix(1_700_000_000, 0), Refused: time.Unix(1_700_000_001, 0), Loads: 2, Refusals: 3}
		},
	})
	lines := scrape(t, m, p)
	check(t, lines, "sluice_decisions_total", map[string]string{
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="allowed",rule="api",source="local"}`: "5",
		`sluice_decisions_total{algorithm="token_bucket",limit="",outcome="denied",rule="api",source="local"}`:  "0",
	})
	check(t, lines, "sluice_breaker", map[string]string{
		`sluice_breaker_state{state="closed"}`:                           "0",
		`sluice_breaker_state{state="open"}`:                             "1",
		`sluice_breaker_state{state="half-open"}`:                        "0",
		`sluice_breaker_transitions_total{from="closed",to="open"}`:      "1",
		`sluice_breaker_transitions_total{from="open",to="half-open"}`:   "0",
		`sluice_breaker_transitions_total{from="half-open",to="open"}`:   "0",
		`sluice_breaker_transitions_total{from="half-open",to="closed"}`: "0",
	})
	check(t, lines, "sluice_instances", map[string]string{"sluice_instances": "3"})
	check(t, lines, "sluice_local", map[string]string{
		`sluice_local_keys{store="buckets"}`:                     "2", // one, and the one that the others share
		`sluice_local_overflow_decisions_total{store="buckets"}`: fmt.Sprint(buckets.Overflows()),
	})
	check(t, lines, "sluice_rules", map[string]string{
		`sluice_rules_info{hash="abc",mode="enforce"}`: "1",
		"sluice_rules":                                  "4",
		"sluice_rules_loaded_timestamp_seconds":         "1.7e+09",
		"sluice_rules_last_reload_successful":           "0",
		`sluice_rules_readings_total{result="loaded"}`:  "2",
		`sluice_rules_readings_total{result="refused"}`: "3",
	})
	if buckets.Overflows() < 4 {
		t.Errorf("%d decisions for want of room, want at least 4", buckets.Overflows())
	}
}

// What a process has no function for is not exported.
func TestProcessWithNothing(t *testing.T) {
	if lines := scrape(t, prom.NewProcess(telemetry.Process{})); len(lines) != 0 {
		t.Errorf("%v", lines)
	}
}

// However many subjects and rules there are, the metrics are few.
func TestMetricsAreBounded(t *testing.T) {
	m := prom.New(nil)
	st := bucket(1)
	for i := range 3 * telemetry.MaxLimits {
		m.Observe(t.Context(), sluice.Ask{Strategy: st, N: 1, Key: sluice.Key{Rule: fmt.Sprint("rule", i), Subject: fmt.Sprint(i)}}, sluice.Decision{Allowed: true}, nil, 0)
	}
	lines, n := scrape(t, m), 0
	for name := range lines {
		if strings.HasPrefix(name, "sluice_decisions_total") {
			n++
		}
	}
	if n != 2*(telemetry.MaxLimits+1) {
		t.Errorf("%d metrics, want %d", n, 2*(telemetry.MaxLimits+1))
	}
	if got := lines[`sluice_decisions_total{algorithm="",limit="",outcome="allowed",rule="(other)",source="shared"}`]; got != fmt.Sprint(2*telemetry.MaxLimits) {
		t.Errorf("(other): %s", got)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	r := rules(t, policy.ModeEnforce)
	m := prom.New(func() *policy.Rules { return r })
	ctx := t.Context()
	for _, c := range []struct {
		rule string
		d    sluice.Decision
		err  error
	}{
		{"login", sluice.Decision{Allowed: true}, nil},
		{"login", sluice.Decision{RetryAfter: 1, Source: sluice.Cached}, nil},
		{"login/next", sluice.Decision{RetryAfter: 1}, nil},
		{"other/x", sluice.Decision{}, sluice.ErrUnavailable},
		{"other/x", sluice.Decision{}, errors.New("foreign")},
	} {
		a := sluice.Ask{Strategy: bucket(1), Key: sluice.Key{Rule: c.rule, Subject: "a"}, N: 1}
		m.Observe(ctx, a, c.d, c.err, time.Millisecond)
		if n := testing.AllocsPerRun(1000, func() { m.Observe(ctx, a, c.d, c.err, time.Millisecond) }); n != 0 {
			t.Errorf("%s %+v %v: %v allocations", c.rule, c.d, c.err, n)
		}
	}
}

// Nor does a whole decision in process that is observed.
func TestDecisionAllocatesNothing(t *testing.T) {
	login := sluice.New(sluice.Observe(local.New(local.Options{}), prom.New(nil)), bucket(10), "login") // allowed, then denied
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { _, _ = login.Allow(ctx, "a") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	m := prom.New(nil)
	a := sluice.Ask{Strategy: bucket(1), Key: sluice.Key{Rule: "login", Subject: "a"}, N: 1}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(ctx, a, sluice.Decision{Allowed: true}, nil, time.Microsecond)
	}
}
