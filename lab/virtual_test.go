package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/lab/sim"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// ok is a result that is right in form: each chart is drawn, each form is written.
func ok(t *testing.T) func(r Result, err error) Result {
	return func(r Result, err error) Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(r.WriteText(&b), r.WriteCSV(&b), r.WriteJSON(&b), r.WriteHTML(&b)); err != nil {
			t.Fatal(err)
		}
		for _, chart := range r.Charts {
			drawn(t, chart)
		}
		for _, row := range r.Results {
			for _, f := range row.Figures {
				if strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
					t.Errorf("figure %q: want snake_case", f.Name)
				}
				if v, ok := f.Value.(float64); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
					t.Errorf("%s of %s is %v", f.Name, row.Name, v)
				}
			}
		}
		return r
	}
}

// figure is one figure of all rows.
func figure(r Result, name string) map[string]float64 {
	found := map[string]float64{}
	for _, row := range r.Results {
		found[row.Name] = row.Number(name)
	}
	return found
}

func wantFigure(t *testing.T, r Result, name string, want map[string]float64) {
	t.Helper()
	if got := figure(r, name); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}

func TestBoundary(t *testing.T) {
	r := ok(t)(Boundary(t.Context(), BoundaryParams{}))
	wantFigure(t, r, "largest_in_20s", map[string]float64{"token_bucket": 800, "fixed_window": 1200, "sliding_window": 700, "leaky_bucket": 800, "exact_log": 600})
	wantFigure(t, r, "largest_in_20s_half_open", map[string]float64{"token_bucket": 799, "fixed_window": 1200, "sliding_window": 699, "leaky_bucket": 799, "exact_log": 600})
	wantFigure(t, r, "before_end", map[string]float64{"token_bucket": 699, "fixed_window": 600, "sliding_window": 600, "leaky_bucket": 699, "exact_log": 600})
	wantFigure(t, r, "after_end", map[string]float64{"token_bucket": 101, "fixed_window": 600, "sliding_window": 100, "leaky_bucket": 101, "exact_log": 0})
	wantFigure(t, r, "acting_in_20s", map[string]float64{"token_bucket": 800, "fixed_window": 1200, "sliding_window": 700, "leaky_bucket": 201, "exact_log": 600})

	// A curve ends where the count does, and has no point for each request.
	r = ok(t)(Boundary(t.Context(), BoundaryParams{Rate: 50_000, Algorithms: []string{"fixed_window"}}))
	if c := r.Charts[0].(Lines).Series[0]; c.last() != 1200 || c.X[len(c.X)-1] != 10 || len(c.X) > 2*curvePoints {
		t.Errorf("%d points to %v at %v", len(c.X), c.last(), c.X[len(c.X)-1])
	}

	// The page of algorithms says this of a burst of 100.
	r = ok(t)(Boundary(t.Context(), BoundaryParams{Limit: sluice.Limit{Count: 600, Period: time.Minute, Burst: 100}, Algorithms: []string{"token_bucket", "leaky_bucket"}}))
	wantFigure(t, r, "largest_in_20s", map[string]float64{"token_bucket": 300, "leaky_bucket": 300})

	r = ok(t)(Boundary(t.Context(), BoundaryParams{Limit: sluice.Limit{Count: 100, Period: 10 * time.Second}, Around: 1500 * time.Millisecond, Rate: 200, Algorithms: []string{"fixed_window"}}))
	wantFigure(t, r, "largest_in_3s", map[string]float64{"fixed_window": 200})
}

func TestBurst(t *testing.T) {
	r := ok(t)(Burst(t.Context(), BurstParams{Strict: true}))
	wantFigure(t, r, "first_second", map[string]float64{
		"token_bucket": 20, "fixed_window": 20, "sliding_window": 10, "leaky_bucket": 20, "exact_log": 20,
		"strict_burst_1": 9, "strict_burst_5": 10, "strict_burst_9": 10,
	})
	wantFigure(t, r, "largest_in_1s_half_open", map[string]float64{
		"token_bucket": 19, "fixed_window": 10, "sliding_window": 10, "leaky_bucket": 19, "exact_log": 10,
		"strict_burst_1": 9, "strict_burst_5": 9, "strict_burst_9": 9,
	})
	wantFigure(t, r, "bound_in_1s", map[string]float64{
		"token_bucket": 19, "fixed_window": 20, "sliding_window": 19, "leaky_bucket": 19, "exact_log": 10,
		"strict_burst_1": 9, "strict_burst_5": 9, "strict_burst_9": 9,
	})
	if v := r.Row("leaky_bucket").Number("acting_first_second"); v != 11 {
		t.Errorf("leaky: %v act in the first second, want 11", v)
	}
	for name, keeps := range map[string]bool{"token_bucket": false, "exact_log": true, "strict_burst_5": true} {
		if got := r.Row(name).Figures.Get("keeps_limit"); got != keeps {
			t.Errorf("%s keeps the limit: %v, want %v", name, got, keeps)
		}
	}
	if r := ok(t)(Burst(t.Context(), BurstParams{})); len(r.Results) != 5 {
		t.Errorf("%d rows without --strict", len(r.Results))
	}
	r = ok(t)(Burst(t.Context(), BurstParams{Limit: sluice.Limit{Count: 600, Period: time.Minute, Burst: 50}, Window: time.Second, Algorithms: []string{"token_bucket"}}))
	wantFigure(t, r, "first_second", map[string]float64{"token_bucket": 60})
}

// Of whatever limit, the strict buckets keep it in any closed window, and one of them to the last unit where that is exact.
func TestBurstStrictKeepsAnyLimit(t *testing.T) {
	for _, count := range []int64{2, 3, 10, 97, 1000} {
		for _, window := range []time.Duration{time.Second, 700 * time.Millisecond, time.Hour} {
			p := BurstParams{Limit: sluice.Limit{Count: count, Period: time.Second, Burst: count}, Window: window, Strict: true, Algorithms: []string{"token_bucket"}}
			if p.Check() != nil {
				continue
			}
			r := ok(t)(Burst(t.Context(), p))
			most := 0.0
			for _, row := range r.Results[1:] {
				most = max(most, row.Number("largest_in_"+inWords(window)))
			}
			if most != float64(count) || len(r.Results) < 2 {
				t.Errorf("%d in %v: the strict ones admit up to %v: %v", count, window, most, figure(r, "largest_in_"+inWords(window)))
			}
		}
	}
}

func TestCompare(t *testing.T) {
	r := ok(t)(Compare(t.Context(), CompareParams{MostCost: 3}))
	for _, row := range r.Results {
		sum := 0.0
		for i, n := range row.Figures.Get("denied_per_bin").([]float64) {
			sum += n + row.Figures.Get("admitted_per_bin").([]float64)[i]
		}
		if sum != row.Number("units_asked") {
			t.Errorf("%s: %v units in the bins, %v asked", row.Name, sum, row.Number("units_asked"))
		}
	}
	r = ok(t)(Compare(t.Context(), CompareParams{}))
	if len(r.Results) != 5 || len(r.Charts) != 4 {
		t.Fatalf("%d rows, %d charts", len(r.Results), len(r.Charts))
	}
	bucket, log := r.Row("token_bucket"), r.Row("exact_log")
	for _, row := range r.Results {
		if row.Number("requests") != bucket.Number("requests") {
			t.Errorf("%s met other requests", row.Name)
		}
		if row.Number("largest_in_1s") > row.Number("bound_in_1s") {
			t.Errorf("%s: above its bound", row.Name)
		}
		sum := 0.0
		for _, n := range row.Figures.Get("admitted_per_bin").([]float64) {
			sum += n
		}
		if sum != row.Number("units_admitted") {
			t.Errorf("%s: %v in the bins, %v admitted", row.Name, sum, row.Number("units_admitted"))
		}
	}
	if r.Row("leaky_bucket").Number("wait_p99_ms") < 500 || bucket.Number("wait_p99_ms") != 0 || log.Number("largest_in_1s") != 10 {
		t.Errorf("%v", r.Results)
	}
}

// never is a strategy of one's own: it lets nothing through.
type never struct{ sluice.Strategy }

func (never) Take(s algorithm.State, now, n int64) (algorithm.State, sluice.Decision) {
	return s, sluice.Decision{RetryAfter: sluice.Never, At: now}
}

func TestCompareOthers(t *testing.T) {
	st, err := policy.NewStrategy("token_bucket", sluice.Limit{Count: 10, Period: time.Second, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	p := CompareParams{Others: []Contender{{"mine", st}, {"never", never{st}}}, Algorithms: []string{"token_bucket"}}
	r := ok(t)(Compare(t.Context(), p))
	if len(r.Results) != 3 || !reflect.DeepEqual(r.Row("mine").Figures, r.Row("token_bucket").Figures) || r.Row("never").Number("admitted") != 0 {
		t.Errorf("%+v", r.Results)
	}
	for want, others := range map[string][]Contender{
		`"a" has no Strategy`: {{"a", nil}}, `name ""`: {{"", st}}, `name "token_bucket"`: {{"token_bucket", st}}, `name "a"`: {{"a", st}, {"a", st}},
	} {
		p.Others = others
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Each shape and each of the manners runs, in a form that holds.
func TestCompareShapes(t *testing.T) {
	trace, err := sim.ReadTrace(strings.NewReader("0,a\n0.1,b\n0.1,a,3\n3.7,a\n"), "csv")
	if err != nil {
		t.Fatal(err)
	}
	for i, shape := range Shapes() {
		p := CompareParams{Shape: shape, Trace: &trace, Retry: Retries()[i%4], Subjects: 1 + i%3, Skew: 1, OneKey: i%2 == 0, MostCost: int64(i % 5), Duration: 20 * time.Second}
		r := ok(t)(Compare(t.Context(), p))
		if r.Row("token_bucket").Number("admitted") < 4 || r.Params.Get("arrivals") != shape {
			t.Errorf("%s: %v", shape, r.Results[0])
		}
	}
	if r := ok(t)(Compare(t.Context(), CompareParams{Shape: "trace", Trace: &trace})); r.Params.Get("duration_s") != 3.7 {
		t.Errorf("%v", r.Params)
	}
	// A long period, and a short one.
	for _, period := range []time.Duration{30 * 24 * time.Hour, time.Microsecond} {
		ok(t)(Compare(t.Context(), CompareParams{Limit: sluice.Limit{Count: 1, Period: period}, Rate: min(1.5/period.Seconds(), 1e6)}))
	}
}

func TestVirtualIsDeterministic(t *testing.T) {
	text := func(seed uint64) string {
		var b bytes.Buffer
		r := ok(t)(Compare(t.Context(), CompareParams{Subjects: 4, Retry: "backoff", Seed: seed}))
		if err := r.WriteHTML(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if first, again := text(1), text(1); first != again {
		t.Error("two runs of one seed differ")
	}
	if text(1) == text(2) {
		t.Error("two seeds give one result")
	}
}

func TestVirtualChecks(t *testing.T) {
	limit := func(count, burst int64, period time.Duration) sluice.Limit {
		return sluice.Limit{Count: count, Period: period, Burst: burst}
	}
	for i, c := range []struct {
		err  error
		want string
	}{
		{BoundaryParams{}.Check(), ""},
		{BoundaryParams{Limit: limit(0, 1, time.Second)}.Check(), "Count 0"},
		{BoundaryParams{Limit: limit(1, -1, time.Second)}.Check(), "Burst -1"},
		{BoundaryParams{Around: 31 * time.Second}.Check(), "Around 31s"},
		{BoundaryParams{Rate: -1}.Check(), "Rate -1"},
		{BoundaryParams{Limit: limit(600, 0, 24*time.Hour), Rate: 1e6}.Check(), "want at most 100000000"},
		{BoundaryParams{Algorithms: []string{"magic"}}.Check(), `"magic"`},
		{BoundaryParams{Algorithms: []string{"exact_log", "exact_log"}}.Check(), "exact_log twice"},
		{BurstParams{}.Check(), ""},
		{BurstParams{Limit: limit(1, 0, 0)}.Check(), "Period 0s"},
		{BurstParams{Window: -1}.Check(), "Window -1ns"},
		{BurstParams{Window: 10000 * time.Hour}.Check(), "Window"},
		{BurstParams{Limit: limit(1e8, 0, time.Second)}.Check(), "want at most 10000000"},
		{BurstParams{Limit: limit(1, 0, time.Second), Strict: true}.Check(), "Count of at least 2"},
		{CompareParams{}.Check(), ""},
		{CompareParams{Limit: limit(-1, 0, time.Second)}.Check(), "Count -1"},
		{CompareParams{Shape: "square"}.Check(), `Shape "square": want one of constant`},
		{CompareParams{Shape: "trace"}.Check(), "Trace: want one"},
		{CompareParams{Shape: "trace", Trace: &sim.Trace{}}.Check(), "no request"},
		{CompareParams{Retry: "never"}.Check(), `Retry "never"`},
		{CompareParams{Rate: math.NaN()}.Check(), "Rate NaN"},
		{CompareParams{Rate: -1}.Check(), "Rate -1"},
		{CompareParams{Rate: 1e6, Duration: time.Hour}.Check(), "want at most 100000000"},
		{CompareParams{Shape: "bursts", Size: -1}.Check(), "Size -1"},
		{CompareParams{Shape: "on-off", On: -1}.Check(), "On -1ns"},
		{CompareParams{Subjects: 2e6}.Check(), "Subjects 2000000"},
		{CompareParams{Duration: -1}.Check(), "Duration -1ns"},
		{CompareParams{Limit: limit(1e8, 0, time.Second), Rate: 1e5, Duration: 900 * time.Second}.Check(), "in the windows"},
	} {
		switch {
		case c.want == "" && c.err != nil, c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%d: %v, want %q", i, c.err, c.want)
		case c.err != nil && !strings.HasPrefix(c.err.Error(), "lab: "):
			t.Errorf("%d: %v: want it to begin with lab", i, c.err)
		}
	}
}

func TestVirtualEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ctx, CompareParams{Rate: 1000, Duration: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 20 * time.Second: "20s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", 24 * time.Hour: "24h",
		90 * time.Minute: "1h30m", 1500 * time.Millisecond: "1_5s", 10 * time.Minute: "10m", 5 * time.Microsecond: "5us", time.Hour + time.Second: "1h0m1s",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// The flags of a shape's text are those of its type.
func TestCompareDescribes(t *testing.T) {
	for _, shape := range Shapes() {
		if p := (CompareParams{Shape: shape, Trace: &sim.Trace{}}.filled()); strings.Contains(fmt.Sprint(p.described(), p.fields()), "%!") {
			t.Errorf("%s: %s", shape, p.described())
		}
	}
}

// The commands that sim counts for a decision are those that Redis runs for one.
func TestCallsAreThoseOfRedis(t *testing.T) {
	server, err := startServer(t.Context(), realServer)
	if err != nil {
		t.Fatal(err)
	}
	defer server.stop()
	store, err := redis.Open("unix://"+server.addr, redis.Options{Timeout: 5 * time.Second, NoCoalescing: true, NoKnownDenials: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	client := goredis.NewClient(&goredis.Options{Network: server.network, Addr: server.addr})
	defer client.Close()
	// calls is how many commands have run inside scripts: all but those that come from outside.
	calls := func() (n int) {
		info, err := client.InfoMap(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"time", "hmget", "hset", "pexpire", "del", "hgetall", "get", "set"} {
			var count int
			_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_"+name], "calls=%d", &count)
			n += count
		}
		return n
	}
	for _, name := range policy.Algorithms() {
		l := sluice.Limit{Count: 3, Period: time.Hour}
		if policy.HasBurst(name) {
			l.Burst = 3
		}
		st, err := policy.NewStrategy(name, l)
		if err != nil {
			t.Fatal(err)
		}
		limiter, want, before := sim.Of(st), 0, calls()
		for range 5 {
			d, err := store.Take(t.Context(), sluice.Ask{Strategy: st, Key: sluice.Key{Rule: name}, N: 1})
			if err != nil {
				t.Fatal(err)
			}
			want += limiter.Calls(d.Allowed, 1)
		}
		if got := calls() - before; got != want || want != 3*4+2*2 {
			t.Errorf("%s: Redis ran %d commands in scripts, sim counts %d", name, got, want)
		}
	}
}
