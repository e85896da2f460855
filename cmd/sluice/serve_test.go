package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// served starts the serve command on a free port, and stops it at the test's end. It returns the URL and the lines
// about rules.
func served(t *testing.T, rules string, args ...string) (url string, lines []string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r, w := io.Pipe()
	var stderr bytes.Buffer
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, append([]string{"serve", rules, "--listen", "127.0.0.1:0", "--admin", "off"}, args...), w, &stderr)
		w.Close()
	}()
	t.Cleanup(func() {
		stop()
		go func() { _, _ = io.Copy(io.Discard, r) }()
		if code := <-exit; code != 0 {
			t.Errorf("serve: exit %d: %s", code, &stderr)
		}
	})
	printed := bufio.NewScanner(r)
	for printed.Scan() {
		line := printed.Text()
		if after, ok := strings.CutPrefix(line, "listening on "); ok {
			url, _, _ = strings.Cut(after, ",")
			continue
		}
		lines = append(lines, line)
		if strings.HasPrefix(line, "leaky: ") || strings.HasPrefix(line, "last: ") {
			return url, lines
		}
	}
	t.Fatalf("serve printed %q and ended: %s", lines, &stderr)
	return "", nil
}

func get(t *testing.T, url string, edit ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range edit {
		e(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// Fifty requests at once to /token: ten pass, and one more for each 100 ms that they take. The others are refused with
// all that a client needs to know.
func TestServeExample(t *testing.T) {
	url, lines := served(t, example)
	want := []string{
		"token: /token: token_bucket 10/s burst 10 per ip",
		"fixed: /fixed: fixed_window 10/s per ip",
		"sliding: /sliding: sliding_window 10/s per ip",
		"leaky: /leaky: leaky_bucket 10/s burst 10 per ip",
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("printed\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}

	var mu sync.Mutex
	passed, refused := 0, 0
	var wg sync.WaitGroup
	start := time.Now()
	for range 50 {
		wg.Go(func() {
			resp, err := http.Get(url + "/token")
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			switch resp.StatusCode {
			case http.StatusOK:
				passed++
			case http.StatusTooManyRequests:
				refused++
				for name, want := range map[string]string{
					"RateLimit-Policy": `"token";q=10;w=1`, "RateLimit": `"token";r=0;t=1`, "Retry-After": "1",
					"Cache-Control": "no-store", "Content-Type": "application/problem+json",
				} {
					if got := resp.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
			default:
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
	wg.Wait()
	if most := 10 + int(time.Since(start)/(100*time.Millisecond)); passed < 10 || passed > most {
		t.Errorf("%d passed in %v, want 10 to %d", passed, time.Since(start), most)
	}
	if passed+refused != 50 {
		t.Errorf("%d passed and %d were refused, want 50 in all", passed, refused)
	}
}

// The echo tells method, path and query, and no header.
func TestServeEcho(t *testing.T) {
	url, _ := served(t, example)
	_, body := get(t, url+"/free/a%2Fb?x=<1>", func(r *http.Request) { r.Header.Set("Authorization", "hunter2") })
	if want := `{"method":"GET","path":"/free/a/b","query":"x=<1>"}` + "\n"; body != want {
		t.Errorf("echo %q, want %q", body, want)
	}
}

const oneRule = "rules:\n  - {name: last, match: /limited, limits: [{algorithm: fixed_window, limit: 1/h, subject: ip}]}\n"

// The upstream sees the connection's own address: what the client claims in X-Forwarded-For is dropped.
func TestServeUpstream(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Upstream", "yes")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"path": r.URL.Path, "for": r.Header.Get("X-Forwarded-For"), "host": r.Header.Get("X-Forwarded-Host"), "forwarded": r.Header.Get("Forwarded"),
		})
	}))
	defer upstream.Close()
	url, _ := served(t, write(t, oneRule), "--upstream", upstream.URL+"/base")

	resp, body := get(t, url+"/limited", func(r *http.Request) {
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		r.Header.Set("Forwarded", "for=192.0.2.1")
	})
	var got map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"path": "/base/limited", "for": "127.0.0.1", "host": strings.TrimPrefix(url, "http://"), "forwarded": ""}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the upstream saw %v, want %v", got, want)
	}
	if resp.Header.Get("X-Upstream") != "yes" || resp.Header.Get("RateLimit") == "" {
		t.Errorf("answer's fields %v, want the upstream's and RateLimit", resp.Header)
	}
	resp, _ = get(t, url+"/limited", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.2") })
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("another X-Forwarded-For: status %d, want 429", resp.StatusCode)
	}
}

func TestServeUpstreamAway(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	upstream.Close()
	url, _ := served(t, write(t, oneRule), "--upstream", upstream.URL)
	if resp, _ := get(t, url+"/"); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d, want 502", resp.StatusCode)
	}
}

// At the end, a request that is under way is finished.
func TestServeFinishes(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
	}))
	defer upstream.Close()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		exit <- run(ctx, []string{"serve", write(t, oneRule), "--listen", "127.0.0.1:0", "--admin", "off", "--upstream", upstream.URL}, w, io.Discard)
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	url, _, _ := strings.Cut(strings.TrimPrefix(line, "listening on "), ",")
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get(url)
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-arrived
	stop()
	close(release)
	if got := <-status; got != http.StatusOK {
		t.Errorf("status %d, want 200", got)
	}
	if code := <-exit; code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}
