package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/redistest"
)

// fleetSize is how many processes run two versions of a rule file.
const fleetSize = 8

// TestVersions alternates two versions of a rule file per request on one key, over real processes that see their files
// change: they admit what the documentation says of edited limits, never answer with an error, and find usage again
// where a version is rolled back.
func TestVersions(t *testing.T) {
	binary, server := build(t), redistest.Start(t)
	fleet := make([]*member, fleetSize)
	for i := range fleet {
		fleet[i] = start(t, binary, server.Addr)
	}
	for _, algorithm := range []string{"token_bucket", "fixed_window", "sliding_window"} {
		t.Run("limit edited: "+algorithm, func(t *testing.T) {
			limit := func(count int) string { return fmt.Sprintf("algorithm: %s, limit: %d/30d", algorithm, count) }
			roll(t, fleet, algorithm, limit(60), limit(100))
			if n := alternate(t, fleet, 240); n != 100 {
				t.Errorf("60 and 100: %d admitted, want 100, what the larger allows", n)
			}
			roll(t, fleet, algorithm, limit(60))
			if n := alternate(t, fleet, 80); n != 0 {
				t.Errorf("rolled back to 60, of which all is used: %d admitted, want none", n)
			}
			roll(t, fleet, algorithm, limit(150), limit(120))
			if n := alternate(t, fleet, 240); n != 50 {
				t.Errorf("120 and 150 with 100 used: %d admitted, want 50", n)
			}
		})
	}
	t.Run("algorithm edited", func(t *testing.T) {
		const before, after = "algorithm: token_bucket, limit: 60/30d", "algorithm: sliding_window, limit: 60/30d"
		roll(t, fleet, "changed", before, after)
		if n := alternate(t, fleet, 80); n != 80 {
			t.Errorf("%d of 40 and 40 admitted, want all: each algorithm counts for itself", n)
		}
		roll(t, fleet, "changed", before)
		if n := alternate(t, fleet, 80); n != 20 {
			t.Errorf("rolled back, with 40 of 60 used: %d admitted, want 20", n)
		}
		roll(t, fleet, "changed", after)
		if n := alternate(t, fleet, 80); n != 20 {
			t.Errorf("rolled on again, with 40 of 60 used: %d admitted, want 20", n)
		}
	})
	for _, c := range []struct {
		algorithm string
		burst     int // 0: a window
	}{{"token_bucket", 20}, {"leaky_bucket", 10}, {"fixed_window", 0}, {"sliding_window", 0}} {
		t.Run("rates: "+c.algorithm, func(t *testing.T) {
			limit := func(count int) string {
				s := fmt.Sprintf("algorithm: %s, limit: %d/s", c.algorithm, count)
				if c.burst > 0 {
					s += fmt.Sprintf(", burst: %d", c.burst)
				}
				return s
			}
			const small, large = 50, 100 // a second
			roll(t, fleet, c.algorithm+"-rates", limit(small), limit(large))
			from := time.Now()
			admitted := float64(demand(t, fleet, 3*time.Second))
			to := time.Now()
			least, most := float64(c.burst)+small*to.Sub(from).Seconds(), float64(c.burst)+large*to.Sub(from).Seconds()
			if c.burst == 0 { // by the windows that it was in for a part, and wholly
				n := float64(to.Unix() - from.Unix() + 1)
				least, most = small*(n-2), large*n
			}
			t.Logf("%.0f admitted: %.3f of the smaller, %.3f of the larger", admitted, admitted/least, admitted/most)
			if admitted > most || admitted < 0.98*least {
				t.Errorf("%.0f admitted: want at least 0.98 of %.0f, what the smaller allows, and at most %.0f, what the larger does", admitted, least, most)
			}
		})
	}
}

// member is a process of a fleet, with a rule file of its own.
type member struct {
	url, redis, rules, text string
	log                     *journal
}

func start(t *testing.T, binary, redis string) *member {
	t.Helper()
	m := &member{redis: redis, log: &journal{}, rules: filepath.Join(t.TempDir(), "rules.yaml")}
	m.text = versionText(redis, "start", "algorithm: fixed_window, limit: 1/s")
	if err := os.WriteFile(m.rules, []byte(m.text), 0o600); err != nil {
		t.Fatal(err)
	}
	m.url, _ = startServe(t, binary, m.rules, m.log)
	return m
}

// versionText is a rule file of one rule for everybody.
func versionText(redis, rule, limit string) string {
	return fmt.Sprintf("store: {redis: \"redis://%s\", timeout: 10s}\nrules:\n  - name: %s\n    match: /\n    on_outage: deny\n    limits:\n      - {%s, subject: global}\n",
		redis, rule, limit)
}

// roll gives the members the limits in turn, and waits until they say that they run them.
func roll(t *testing.T, fleet []*member, rule string, limits ...string) {
	t.Helper()
	var changed []*member
	for i, m := range fleet {
		text := versionText(m.redis, rule, limits[i%len(limits)])
		if text == m.text {
			continue
		}
		m.text, changed = text, append(changed, m)
		m.log.forget()
		if err := os.WriteFile(m.rules+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(m.rules+".new", m.rules); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range changed {
		m.log.await(t, fmt.Sprintf("msg=\"sluice: rules\" path=%s hash=%x", m.rules, sha256.Sum256([]byte(m.text))))
	}
}

// alternate makes n requests one after the other, of the members in turn, and returns how many passed.
func alternate(t *testing.T, fleet []*member, n int) (admitted int) {
	t.Helper()
	for i := range n {
		if passes(t, http.DefaultClient, fleet[i%len(fleet)].url) {
			admitted++
		}
	}
	return admitted
}

// demand makes more requests than any limit allows, of the members in turn, and returns how many passed.
func demand(t *testing.T, fleet []*member, d time.Duration) (admitted int64) {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var n, next atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range 32 {
		wg.Go(func() {
			for time.Now().Before(end) {
				if passes(t, client, fleet[int(next.Add(1))%len(fleet)].url) {
					n.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return n.Load()
}

// passes makes a request. Anything but a verdict is a fault.
func passes(t *testing.T, client *http.Client, url string) bool {
	resp, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("status %d", resp.StatusCode)
	}
	return resp.StatusCode == http.StatusOK
}

// journal is what a process has written. It is safe for concurrent use.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *journal) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *journal) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *journal) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Reset()
}

// await waits until the process has written want.
func (o *journal) await(t *testing.T, want string) {
	t.Helper()
	for give := time.Now().Add(30 * time.Second); !strings.Contains(o.String(), want); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(give) {
			t.Fatalf("the process has not written %q:\n%s", want, o)
		}
	}
}
