package otel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry"
	"github.com/sluice-go/sluice/telemetry/otel"
)

// bucket has a burst, and regains nothing to speak of.
func bucket(burst int64) sluice.Strategy {
	return sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: 1000 * time.Hour, Burst: burst}))
}

func meter() (metric.Meter, *sdk.ManualReader) {
	reader := sdk.NewManualReader()
	return sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), reader
}

func metrics(t testing.TB, m metric.Meter, rules func() *policy.Rules) *otel.Metrics {
	t.Helper()
	o, err := otel.New(m, rules)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// collect returns each point as "name attributes value", the count for a histogram.
func collect(t testing.TB, reader *sdk.ManualReader) (points []string) {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	add := func(name string, set attribute.Set, value any) {
		var attributes []string
		for _, kv := range set.ToSlice() {
			attributes = append(attributes, strings.TrimPrefix(string(kv.Key), "sluice.")+"="+kv.Value.AsString())
		}
		points = append(points, strings.TrimPrefix(fmt.Sprint(name, " ", strings.Join(attributes, " "), " ", value), "sluice."))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Count)
				}
			default:
				t.Errorf("%s: %T", m.Name, data)
			}
		}
	}
	return points
}

// check compares two sets of lines.
func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	count := map[string]int{}
	for _, line := range got {
		count[line]++
	}
	for _, line := range want {
		count[line]--
	}
	for line, n := range count {
		if n != 0 {
			t.Errorf("%+d: %s", n, line)
		}
	}
}

func TestDecisions(t *testing.T) {
	m, reader := meter()
	r, err := policy.New(policy.Config{Rules: []policy.RuleConfig{{Name: "login", Match: "POST /login", Limits: []policy.LimitConfig{
		{Name: "ip", Algorithm: "token_bucket", Limit: bucket(3).Limit(), Subject: "ip"},
		{Name: "next", Algorithm: "token_bucket", Limit: bucket(1).Limit(), Subject: "ip", Shadow: true},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	st := sluice.Observe(local.New(local.Options{}), metrics(t, m, func() *policy.Rules { return r }))
	ctx := t.Context()
	login, next := sluice.New(st, bucket(3), "login"), sluice.New(st, bucket(1), "login/next")
	for range 5 {
		_, _ = login.Allow(ctx, "a")
		_, _ = next.Allow(ctx, "a")
	}
	_, _ = login.Peek(ctx, "a", 1)
	_, _ = login.AllowN(ctx, "a", -1)
	check(t, collect(t, reader),
		"decisions algorithm=token_bucket limit=ip outcome=allowed rule=login source=local 3",
		"decisions algorithm=token_bucket limit=ip outcome=denied rule=login source=local 2",
		"decisions algorithm=token_bucket limit=ip outcome=failed rule=login source=none 1",
		"shadow.decisions algorithm=token_bucket limit=next rule=login verdict=agree 1",
		"shadow.decisions algorithm=token_bucket limit=next rule=login verdict=disagree 4",
		"decision.duration source=local 10",
		"decision.duration source=none 1",
	)
}

func TestProcess(t *testing.T) {
	m, reader := meter()
	away := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	breaker := failover.New(failover.Options{TripAfter: 1, OpenFor: time.Hour, Instances: 3, OnChange: metrics(t, m, nil).BreakerChanged})
	defer breaker.Close()
	buckets := local.NewBuckets(local.BucketsOptions{Share: breaker.Share})
	guarded := breaker.Guard(away, buckets)
	for range 2 {
		if _, err := sluice.New(guarded, bucket(9), "api").Allow(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	registered, err := otel.RegisterProcess(m, telemetry.Process{
		Breaker: breaker.State, Share: breaker.Share, Stores: map[string]telemetry.LocalStore{"buckets": buckets},
		Rules: func() telemetry.Rules {
			return telemetry.Rules{Hash: "abc", Mode: "enforce", Count: 4, Loaded: time.Unix(1_700_000_000, 0), Loads: 2, Refusals: 3}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	changed := "breaker.transitions breaker.from=closed breaker.to=open 1"
	check(t, collect(t, reader), changed,
		"breaker.state breaker.state=closed 0", "breaker.state breaker.state=open 1", "breaker.state breaker.state=half-open 0",
		"instances  3", "local.keys store=buckets 1", "local.overflow.decisions store=buckets 0",
		"rules.info rules.hash=abc rules.mode=enforce 1", "rules  4", "rules.loaded  1700000000", "rules.last_reload_successful  1",
		"rules.readings rules.result=loaded 2", "rules.readings rules.result=refused 3",
	)
	if err := registered.Unregister(); err != nil {
		t.Fatal(err)
	}
	check(t, collect(t, reader), changed)
}

// What a process has no function for is not exported.
func TestProcessWithNothing(t *testing.T) {
	m, reader := meter()
	if _, err := otel.RegisterProcess(m, telemetry.Process{}); err != nil {
		t.Fatal(err)
	}
	check(t, collect(t, reader))
}

// The SDK itself allocates nothing here, since the attributes are made once.
func TestObserveAllocatesNothing(t *testing.T) {
	m, _ := meter()
	o, ctx := metrics(t, m, nil), t.Context()
	for _, d := range []sluice.Decision{{Allowed: true}, {RetryAfter: 1, Source: sluice.Cached}} {
		a := sluice.Ask{Strategy: bucket(1), Key: sluice.Key{Rule: "login", Subject: "a"}, N: 1}
		o.Observe(ctx, a, d, nil, time.Millisecond)
		if n := testing.AllocsPerRun(1000, func() { o.Observe(ctx, a, d, nil, time.Millisecond) }); n != 0 {
			t.Errorf("%+v: %v allocations", d, n)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	m, _ := meter()
	o, ctx := metrics(b, m, nil), b.Context()
	a := sluice.Ask{Strategy: bucket(1), Key: sluice.Key{Rule: "login", Subject: "a"}, N: 1}
	b.ReportAllocs()
	for b.Loop() {
		o.Observe(ctx, a, sluice.Decision{Allowed: true}, nil, time.Microsecond)
	}
}
