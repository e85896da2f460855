package prom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
)

// A real Prometheus scrapes sluice serve while its Redis comes and goes, and answers each query of the dashboard with at
// least one number.
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

const busyRules = `
store: {redis: "env:SOME_REDIS", timeout: 50ms}
failover: {trip_after: 3, open_for: 100ms}
trusted_proxies: [127.0.0.1]
rules:
  - name: login
    match: "/"
    limits:
      - {algorithm: token_bucket, limit: 50/s, burst: 5, subject: ip}
      - {name: next, algorithm: fixed_window, limit: 1/h, subject: ip, shadow: true}
`

// busyInstance returns the URL of a `sluice serve` whose requests and whose Redis come and go while the test runs.
func busyInstance(t *testing.T) string {
	folder := t.TempDir()
	write := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(folder, name)
	}
	binary := filepath.Join(folder, "sluice")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/sluice").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := redistest.Start(t)
	listen, admin := freeAddress(t), freeAddress(t)
	cmd := exec.Command(binary, "serve", write("rules.yaml", busyRules), "--listen", listen, "--admin", admin)
	cmd.Env = append(os.Environ(), "SOME_REDIS=redis://"+server.Addr)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	process, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	ask := func(patience time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listen+"/", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
	running.Go(func() {
		for ctx.Err() == nil {
			for range 40 {
				ask(time.Second)
				time.Sleep(time.Millisecond)
			}
			server.Stop()
			ask(15 * time.Millisecond) // who leaves while Redis hangs is counted as well
			for range 40 {
				ask(time.Second)
				time.Sleep(time.Millisecond)
			}
			server.Cont()
			time.Sleep(150 * time.Millisecond) // until the breaker probes
		}
	})
	return "http://" + admin
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
