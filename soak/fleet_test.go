//go:build linux

package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
)

const token = "0123456789abcdef"

// rules is the rule file; limit is what edits change. Periods are short, so that what is kept soon reaches its height.
func rules(redis string, limit int) string {
	return fmt.Sprintf(`store: {redis: "redis://%s", timeout: 50ms}
failover: {open_for: 200ms, group: soak}
trusted_proxies: [127.0.0.1]
rules:
  - name: everything
    match: always
    limits: [{algorithm: sliding_window, limit: 100000/10s, subject: global}]
  - name: login
    match: "POST /login"
    on_outage: deny
    limits:
      - {algorithm: token_bucket, limit: %[2]d/10s, burst: 10, subject: ip}
      - {algorithm: fixed_window, limit: 1000/10s, subject: global}
  - name: api
    match: /api/
    cost: {max: 5}
    settle: "response:X-Actual-Cost"
    limits:
      - {algorithm: sliding_window, limit: %[2]d/10s, subject: "header:X-API-Key"}
      - {name: next, algorithm: token_bucket, limit: 5/s, burst: 5, subject: ip, shadow: true}
  - name: queue
    match: /queue
    on_outage: allow
    limits: [{algorithm: leaky_bucket, limit: 200/s, burst: 5, subject: ip, max_delay: 20ms}]
`, redis, limit)
}

// fleet is two processes on one rule file, and the Redis that they share.
type fleet struct {
	path      string // of the rule file
	redis     *redistest.Server
	proxy     *redistest.Proxy // between the two
	processes []*process
}

// process is one sluice serve.
type process struct {
	cmd                         *exec.Cmd
	child                       *child.Process
	listen, check, envoy, admin string

	mu       sync.Mutex
	complain []string // lines of its log that nobody expects
	reading  sync.WaitGroup
}

func startFleet(t *testing.T) *fleet {
	t.Helper()
	folder := t.TempDir()
	binary := filepath.Join(folder, "sluice")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/sluice").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f := &fleet{path: filepath.Join(folder, "rules.yaml"), redis: redistest.Start(t)}
	f.proxy = redistest.StartProxy(t, f.redis.Addr)
	f.edit(t, 20)
	f.processes = []*process{
		startProcess(t, binary, f.path), // answers itself
		startProcess(t, binary, f.path, "--upstream", startUpstream(t)),
	}
	return f
}

// startUpstream serves what one process stands before. It says of each request what it cost after all, which is what
// the rule with settle goes by.
func startUpstream(t *testing.T) (url string) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Actual-Cost", strconv.FormatInt(n.Add(1)%4, 10))
		_, _ = io.WriteString(w, "ok\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func startProcess(t *testing.T, binary, path string, more ...string) *process {
	t.Helper()
	p := &process{}
	args := []string{"serve", path, "--listen", "127.0.0.1:0", "--check", "127.0.0.1:0", "--envoy", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	p.cmd = exec.Command(binary, append(args, more...)...)
	p.cmd.Env = append(os.Environ(), "SLUICE_ADMIN_TOKEN="+token)
	out, stdout := pipe(t)
	log, stderr := pipe(t)
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.reading.Go(func() { p.watch(log) })
	var err error
	p.child, err = child.Start(p.cmd)
	_, _ = stdout.Close(), stderr.Close() // so that those of the process are the last, and reading ends with it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.child.Kill()
		p.reading.Wait()
	})
	lines := bufio.NewScanner(out)
	for p.listen == "" || p.check == "" || p.envoy == "" || p.admin == "" {
		if !lines.Scan() {
			t.Fatalf("sluice serve does not say where it listens: %q", p.complaints())
		}
		for prefix, to := range map[string]*string{"listening on ": &p.listen, "checks on ": &p.check, "envoy on ": &p.envoy, "admin on ": &p.admin} {
			if after, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				*to, _, _ = strings.Cut(after, ",")
			}
		}
	}
	p.reading.Go(func() { _, _ = io.Copy(io.Discard, out) })
	return p
}

func (p *process) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.complain)
}

// pipe is an operating system's: one of package io would not end with the process.
func pipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, w
}

// watch reads a log, and keeps what an operator would have to look at: errors, and what is no log line at all, such as a
// panic. Broken rule files are part of the soak.
func (p *process) watch(log io.Reader) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		line := lines.Text()
		bad := strings.Contains(line, "level=ERROR") || !strings.Contains(line, "level=")
		if bad && !strings.Contains(line, "the rule file is refused") {
			p.mu.Lock()
			if len(p.complain) < 20 {
				p.complain = append(p.complain, line)
			}
			p.mu.Unlock()
		}
	}
	_, _ = io.Copy(io.Discard, log) // a line too long to scan
}

// edit puts another rule file in place of the one that there is, as an editor does.
func (f *fleet) edit(t testing.TB, limit int) { f.write(t, rules(f.proxy.Addr, limit)) }

func (f *fleet) write(t testing.TB, text string) {
	next := f.path + ".next"
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, f.path)
	}
	if err != nil {
		t.Error(err)
	}
}

var operator = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: workers}}

// ask asks a process's admin port; into may be nil.
func (p *process) ask(method, path string, into any) error {
	req, err := http.NewRequestWithContext(context.Background(), method, p.admin+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := operator.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, body)
	case into == nil:
		return nil
	}
	return json.Unmarshal(body, into)
}

// look is what a process takes up now.
func (p *process) look() (s sample, err error) {
	var status struct {
		Goroutines int64
		Heap       int64 `json:"heap_bytes"`
	}
	if err := p.ask("GET", "/status", &status); err != nil {
		return s, err
	}
	s.Goroutines, s.Heap = status.Goroutines, status.Heap
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		return s, err
	}
	s.Files = int64(len(files))
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return s, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return s, err
	}
	s.Resident = pages * int64(os.Getpagesize())
	return s, nil
}

// rest is what the processes take up without load. Where they were looked at before, it waits until goroutines and files
// are as few again: connections end with their clients.
func (f *fleet) rest(t *testing.T, before []sample) (now []sample) {
	t.Helper()
	for i, p := range f.processes {
		var s sample
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			var err error
			if s, err = p.look(); err != nil {
				t.Fatal(err)
			}
			// Connections to Redis are kept: a pool of ten for each core, and one of ten for pipelines.
			const more = 20
			files := int64(more + 10*runtime.GOMAXPROCS(0) + 10)
			if before == nil || s.Goroutines <= before[i].Goroutines+more && s.Files <= before[i].Files+files {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("process %d, a minute after the load: %d goroutines and %d open files, %d and %d before it",
					i, s.Goroutines, s.Files, before[i].Goroutines, before[i].Files)
				break
			}
		}
		now = append(now, s)
	}
	return now
}

// checkRedis looks for keys that would stay for ever.
func (f *fleet) checkRedis(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := f.redis.Client()
	keys := 0
	for cursor := uint64(0); ; {
		page, next, err := c.Scan(ctx, cursor, "*", 1000).Result()
		if err != nil {
			t.Error(err)
			return
		}
		for _, key := range page {
			if ttl, err := c.PTTL(ctx, key).Result(); err != nil || ttl == -1 {
				t.Errorf("%s has no TTL (%v)", key, err)
				return
			}
		}
		keys += len(page)
		if cursor = next; cursor == 0 {
			break
		}
	}
	t.Logf("%d keys in Redis, each with a TTL; %s of memory", keys, f.redis.Info("memory")["used_memory_human"])
}

// end ends the processes as an operator does.
func (f *fleet) end(t *testing.T) {
	for i, p := range f.processes {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
			continue
		}
		if err := p.ended(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		for _, line := range p.complaints() {
			t.Errorf("process %d: %s", i, line)
		}
	}
}

func (p *process) ended() error {
	for deadline := time.Now().Add(30 * time.Second); !p.child.Ended(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("it runs 30s after SIGTERM")
		}
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("exit code %d, want 0", code)
	}
	return nil
}
