package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/redistest"
)

// TestFleet runs real processes of the command on one Redis: together they admit what one would.
func TestFleet(t *testing.T) {
	binary := build(t)
	server := redistest.Start(t)
	for _, c := range []struct {
		name   string
		limits []string // one process each
		rate   float64
		burst  float64
	}{
		{"two processes", []string{"limit: 1000/s, burst: 1000", "limit: 1000/s, burst: 1000"}, 1000, 1000},
		{"two processes of two versions", []string{"limit: 10/s, burst: 100", "limit: 10/s, burst: 10"}, 10, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			server.Flush()
			var urls []string
			for _, limit := range c.limits {
				urls = append(urls, serveProcess(t, binary, server.Addr, limit))
			}
			admitted, took := load(t, urls, 3*time.Second)
			most := c.burst + c.rate*took.Seconds()
			t.Logf("%d admitted in %v: %.4f of burst + rate·t = %.0f", admitted, took.Round(time.Millisecond), float64(admitted)/most, most)
			if float64(admitted) > most {
				t.Errorf("%d admitted: want at most %.0f", admitted, most)
			}
			if float64(admitted) < 0.9*most { // on a quiet machine it is above 0.99
				t.Errorf("%d admitted: want about %.0f", admitted, most)
			}
		})
	}
}

// build builds the command.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "sluice")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// serveProcess starts `sluice serve` with one rule for everybody, and returns its URL.
func serveProcess(t *testing.T, binary, redis, limit string) string {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	text := fmt.Sprintf("store: {redis: \"redis://%s\", timeout: 10s}\nrules:\n  - name: fleet\n    match: /\n    on_outage: deny\n    limits:\n      - {algorithm: token_bucket, %s, subject: global}\n", redis, limit)
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := startServe(t, binary, rules, os.Stderr)
	return url
}

// startServe starts `sluice serve` on a free port, and stops it at the test's end.
func startServe(t *testing.T, binary, rules string, stderr io.Writer) (url string, process *os.Process) {
	t.Helper()
	cmd := exec.Command(binary, "serve", rules, "--listen", "127.0.0.1:0")
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("serve ends with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	_, rest, ok := strings.Cut(line, "http://")
	if err != nil || !ok {
		t.Fatalf("serve prints %q, %v: want its address", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	return "http://" + strings.TrimRight(strings.Fields(rest)[0], ","), cmd.Process
}

// load asks each URL from 64 clients without a pause, and returns how many requests passed, and in what time.
func load(t *testing.T, urls []string, d time.Duration) (admitted int64, took time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var n atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for _, url := range urls {
		for range 64 {
			wg.Go(func() {
				for ctx.Err() == nil {
					res, err := client.Get(url)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					switch res.StatusCode {
					case http.StatusOK:
						n.Add(1)
					case http.StatusTooManyRequests:
					default:
						t.Errorf("status %d", res.StatusCode)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return n.Load(), time.Since(start)
}
