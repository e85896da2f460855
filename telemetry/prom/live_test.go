package prom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry"
	"github.com/sluice-go/sluice/telemetry/prom"
)

// A real Prometheus scrapes a process that decides, and answers each query of the dashboard with at least one number.
func TestTheDashboardIsAnswered(t *testing.T) {
	tool := command(t, "prometheus")
	instance := busyInstance(t)
	address := freeAddress(t)
	folder := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n  - {job_name: api, static_configs: [{targets: [%q]}]}\n",
		strings.TrimPrefix(instance, "http://"))
	if err := os.WriteFile(folder+"/prometheus.yml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "--config.file="+folder+"/prometheus.yml", "--storage.tsdb.path="+folder+"/data", "--web.listen-address="+address, "--log.level=error")
	cmd.Stderr = t.Output()
	server, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // it takes about two
	defer cancel()
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			query := strings.NewReplacer("$__rate_interval", "1m", "$job", "api", "$instance", ".*", "$rule", ".*").Replace(target.Expr)
			for {
				n, err := answers(ctx, address, query)
				if err == nil && n > 0 {
					break
				}
				select {
				case <-time.After(100 * time.Millisecond): // until it has scraped twice
					continue
				case <-ctx.Done():
				}
				t.Errorf("panel %s: %s: %d answers, %v", p.Title, query, n, err)
				break
			}
		}
	}
}

// busyInstance returns the URL of a process that exports all there is, and decides while the test runs.
func busyInstance(t *testing.T) string {
	r := rules(t, policy.ModeEnforce)
	m := prom.New(func() *policy.Rules { return r })
	breaker := failover.New(failover.Options{TripAfter: 1, OpenFor: time.Hour, OnChange: m.BreakerChanged})
	t.Cleanup(func() { _ = breaker.Close() })
	buckets := local.NewBuckets(local.BucketsOptions{Share: breaker.Share})
	reg := prometheus.NewRegistry()
	reg.MustRegister(m, prom.NewProcess(telemetry.Process{
		Breaker: breaker.State, Share: breaker.Share, Stores: map[string]telemetry.LocalStore{"buckets": buckets},
		Rules: func() telemetry.Rules {
			return telemetry.Rules{Hash: "abc", Mode: "enforce", Count: 1, Loaded: time.Now()}
		},
	}))
	away := sluice.StoreFunc(func(context.Context, sluice.Ask) (sluice.Decision, error) {
		return sluice.Decision{}, sluice.ErrUnavailable
	})
	st := sluice.Observe(breaker.Guard(away, buckets), m)
	bare := sluice.Observe(away, m)
	scrape := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for _, rule := range []string{"login", "login/next"} { // so that every counter moves between two scrapes
			for range 3 {
				_, _ = sluice.New(st, bucket(1), rule).Allow(req.Context(), "a")
				_, _ = sluice.New(bare, bucket(1), rule).Allow(req.Context(), "a")
			}
		}
		scrape.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// answers is how many numbers a query finds. One that is no number, such as 0/0, is none.
func answers(ctx context.Context, address, query string) (n int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("%w: %s", err, body)
	}
	for _, r := range answer.Data.Result {
		if r.Value[1] != "NaN" {
			n++
		}
	}
	if answer.Error != "" {
		return n, fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return n, nil
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// command returns the path of a program of Debian's package prometheus, or skips the test; with CI set there must be one.
func command(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("no %s in PATH, and CI is set: install prometheus (Debian: apt-get install prometheus)", name)
	}
	t.Skipf("no %s in PATH: queries and alerts are parsed only (Debian: apt-get install prometheus)", name)
	return ""
}
