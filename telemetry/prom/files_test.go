package prom_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry"
	"github.com/sluice-go/sluice/telemetry/prom"
)

const (
	dashboardFile = "../../examples/grafana/sluice.json"
	alertsFolder  = "../../examples/prometheus"
)

// exported returns every metric as queries name it, with its labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	r := rules(t, policy.ModeEnforce)
	m := prom.New(func() *policy.Rules { return r })
	for _, rule := range []string{"login", "login/next"} {
		m.Observe(t.Context(), sluice.Ask{Strategy: bucket(1), Key: sluice.Key{Rule: rule}, N: 1}, sluice.Decision{Allowed: true}, nil, 0)
	}
	p := prom.NewProcess(telemetry.Process{
		Breaker: func() failover.State { return failover.Closed }, Share: func() float64 { return 1 },
		Stores: map[string]telemetry.LocalStore{"buckets": local.NewBuckets(local.BucketsOptions{})},
		Rules:  func() telemetry.Rules { return telemetry.Rules{Hash: "x", Mode: "enforce", Loaded: time.Now()} },
	})
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m, p)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, f := range families {
		labels := []string{"job", "instance"} // the scrape's
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		names[f.GetName()] = labels
		if f.GetMetric()[0].GetHistogram() != nil {
			delete(names, f.GetName())
			names[f.GetName()+"_sum"], names[f.GetName()+"_count"] = labels, labels
			names[f.GetName()+"_bucket"] = append(labels, "le")
		}
	}
	return names
}

var (
	metricName = regexp.MustCompile(`\bsluice_\w+`)
	grouping   = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	matchers   = regexp.MustCompile(`\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	legendName = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)[^}]*\}\}`)
)

// faults returns the metrics and labels of a query, and of the labels that its legend shows, that nobody exports.
func faults(names map[string][]string, query, legend string) (found []string) {
	labels := []string{"__name__"}
	metrics := metricName.FindAllString(query, -1)
	for _, name := range metrics {
		known, ok := names[name]
		if !ok {
			found = append(found, name)
		}
		labels = append(labels, known...)
	}
	if len(metrics) == 0 {
		found = append(found, "no metric of sluice")
	}
	var used []string
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			used = append(used, strings.TrimSpace(label))
		}
	}
	for _, m := range matchers.FindAllStringSubmatch(query, -1) {
		for _, label := range matcher.FindAllStringSubmatch(m[1], -1) {
			used = append(used, label[1])
		}
	}
	for _, label := range legendName.FindAllStringSubmatch(legend, -1) {
		used = append(used, label[1])
	}
	for _, label := range used {
		if !slices.Contains(labels, label) {
			found = append(found, "label "+label)
		}
	}
	return found
}

func TestFaults(t *testing.T) {
	names := exported(t)
	for _, c := range []struct {
		query, legend string
		faults        int
	}{
		{`sum by (rule) (rate(sluice_decisions_total{outcome="denied"}[5m]))`, "{{rule}}", 0},
		{`sum by (le) (sluice_decision_duration_seconds_bucket)`, "", 0},
		{`sluice_decision_total`, "", 1},
		{`sluice_decision_duration_seconds`, "", 1},
		{`sum by (rules) (sluice_decisions_total)`, "", 1},
		{`sluice_decisions_total{result="denied"}`, "", 1},
		{`sluice_decisions_total`, "{{ subject }}", 1},
		{`up`, "", 1},
	} {
		if got := faults(names, c.query, c.legend); len(got) != c.faults {
			t.Errorf("%s: %q", c.query, got)
		}
	}
}

type dashboard struct {
	Title  string
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The dashboard asks for nothing that is not exported, and shows all that is.
func TestDashboard(t *testing.T) {
	names, seen := exported(t), map[string]bool{}
	for _, p := range readDashboard(t).Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s has no query", p.Title)
		}
		for _, q := range p.Targets {
			for _, fault := range faults(names, q.Expr, q.LegendFormat) {
				t.Errorf("panel %s: %s: there is no %s", p.Title, q.Expr, fault)
			}
			for _, name := range metricName.FindAllString(q.Expr, -1) {
				seen[name] = true
			}
		}
	}
	for name := range names {
		if !seen[name] {
			t.Errorf("%s is in no panel", name)
		}
	}
	for _, v := range readDashboard(t).Templating.List {
		if v.Type != "query" {
			continue
		}
		for _, fault := range faults(names, v.Query, "") {
			t.Errorf("variable %s: there is no %s", v.Name, fault)
		}
	}
}

// The page names every metric with its labels, and none that is not there.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	row, documented := regexp.MustCompile("(?m)^\\| `(sluice_\\w+)` \\|([^|]*)\\|"), map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		documented[m[1]] = strings.Fields(strings.ReplaceAll(m[2], "`", ""))
	}
	for name, labels := range exported(t) {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		labels = slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == "job" || l == "instance" || l == "le" })
		got, ok := documented[name]
		slices.Sort(got)
		slices.Sort(labels)
		if !ok || !slices.Equal(got, labels) {
			t.Errorf("%s has the labels %q; the page says %q", name, labels, got)
		}
	}
	names := exported(t)
	for name := range documented {
		if names[name] == nil && names[name+"_count"] == nil {
			t.Errorf("the page says %s: there is none", name)
		}
	}
}

type alerts struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr, For string
			Annotations      map[string]string
		}
	}
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(alertsFolder + "/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(alertsFolder + "/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file alerts
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	names, n := exported(t), 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			for _, fault := range faults(names, r.Expr, r.Annotations["summary"]) {
				if fault != "label value" { // {{ $value }}
					t.Errorf("%s: there is no %s", r.Alert, fault)
				}
			}
			if r.Annotations["description"] == "" || !strings.Contains(string(tests), "alertname: "+r.Alert) {
				t.Errorf("%s has no description or no test", r.Alert)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d alerts", n)
	}
}

// promtool runs Prometheus's own checker on a file in a folder.
func promtool(t *testing.T, folder string, args ...string) {
	t.Helper()
	tool := command(t, "promtool")
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

func TestPromtoolAcceptsTheAlerts(t *testing.T) {
	promtool(t, alertsFolder, "check", "rules", "alerts.yaml")
	promtool(t, alertsFolder, "test", "rules", "alerts_test.yaml")
}

// Prometheus parses each query of the dashboard, once Grafana has put its variables in.
func TestPromtoolAcceptsTheQueries(t *testing.T) {
	type rule struct{ Record, Expr string }
	var rules []rule
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*", "$rule", ".*").Replace(q.Expr)
			rules = append(rules, rule{"panel:query:" + string(rune('a'+len(rules)%26)) + string(rune('a'+len(rules)/26)), expr})
		}
	}
	file := map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/queries.yaml", text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, folder, "check", "rules", "queries.yaml")
}
