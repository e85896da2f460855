package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/policy"
)

// mirror is an upstream that answers with the fields that tell of whom a request is.
func mirror(t *testing.T) *httptest.Server {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := map[string][]string{"Host": {r.Host}}
		for name, values := range r.Header {
			if strings.Contains(name, "Forwarded") {
				seen[name] = values
			}
		}
		_ = json.NewEncoder(w).Encode(seen)
	}))
	t.Cleanup(upstream.Close)
	return upstream
}

// What a trusted proxy says of the client reaches the upstream, with the proxy's own address behind it; what anyone
// else says does not. Which peers are trusted may change at any time.
func TestServeForwarded(t *testing.T) {
	upstream := mirror(t)
	rules := write(t, proxiedRule)
	url, _ := served(t, rules, "--upstream", upstream.URL)
	host, here := strings.TrimPrefix(upstream.URL, "http://"), strings.TrimPrefix(url, "http://")
	said := http.Header{
		"X-Forwarded-For": {"192.0.2.1", "198.51.100.7, 192.0.2.2"}, "X-Forwarded-Proto": {"https"},
		"X-Forwarded-Host": {"shop.example"}, "Forwarded": {"for=192.0.2.1"},
	}
	believed := http.Header{
		"Host": {host}, "X-Forwarded-For": {"192.0.2.1, 198.51.100.7, 192.0.2.2, 127.0.0.1"}, "X-Forwarded-Proto": {"https"},
		"X-Forwarded-Host": {"shop.example"},
	}
	own := http.Header{"Host": {host}, "X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {here}}
	seen := func(said http.Header) (got http.Header) {
		_, body := get(t, url, func(r *http.Request) { r.Header = said.Clone() })
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := seen(said); !reflect.DeepEqual(got, believed) {
		t.Errorf("from a trusted proxy: the upstream saw %v, want %v", got, believed)
	}
	if got := seen(http.Header{}); !reflect.DeepEqual(got, own) {
		t.Errorf("from a trusted proxy that says nothing: the upstream saw %v, want %v", got, own)
	}
	if err := os.WriteFile(rules, []byte(oneRule), 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := seen(said)
		if reflect.DeepEqual(got, own) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("from anyone else: the upstream saw %v, want %v", got, own)
		}
	}
}

// An upstream that takes a request and says nothing is given up; one that has begun to answer is not.
func TestServeUpstreamTimeout(t *testing.T) {
	ended := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Second)
			fmt.Fprint(w, "at last")
			return
		}
		select {
		case <-ended:
		case <-time.After(20 * time.Second): // nobody gave it up
		}
	}))
	defer upstream.Close()
	defer close(ended)
	url, _ := served(t, write(t, oneRule), "--upstream", upstream.URL, "--upstream-timeout", "300ms")
	resp, body := get(t, url+"/silent")
	if resp.StatusCode != http.StatusGatewayTimeout || body == "" {
		t.Errorf("silent: status %d, %q: want 504 and a few words", resp.StatusCode, body)
	}
	if resp, body := get(t, url+"/slow"); resp.StatusCode != http.StatusOK || body != "at last" {
		t.Errorf("slow: status %d, %q: want 200 and all of it", resp.StatusCode, body)
	}
}

// The header and each part of a response reach the client when the upstream has sent them, of whatever length it is.
func TestServeStreams(t *testing.T) {
	release := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "8")
		_ = http.NewResponseController(w).Flush()
		<-release
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-release
		fmt.Fprint(w, "full")
	}))
	defer upstream.Close()
	url, _ := served(t, write(t, oneRule), "--upstream", upstream.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	defer close(release) // whatever has come
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("no header: %v", err)
	}
	defer resp.Body.Close()
	for _, want := range []string{"half", "full"} {
		release <- struct{}{}
		part := make([]byte, 4)
		if _, err := io.ReadFull(resp.Body, part); err != nil || string(part) != want {
			t.Fatalf("%q, %v: want %q", part, err, want)
		}
	}
}

const upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// switching is an upstream that speaks another protocol when asked to: it sends back what it gets.
func switching(t *testing.T) *httptest.Server {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = both.Flush()
		_, _ = io.Copy(conn, both)
	}))
	t.Cleanup(upstream.Close)
	return upstream
}

// An upgraded connection that does not end is cut off when its time is over, at both ends.
func TestUpgradedIsCutOff(t *testing.T) {
	upstream, err := url.Parse(switching(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	errorLog := log.New(io.Discard, "", 0)
	to := newProxy(upstream, time.Minute, func() *policy.Rules { return rules }, errorLog)
	var open ports
	if err := open.proxy("--listen", "127.0.0.1:0", "%s", &http.Server{Handler: to, ErrorLog: errorLog}, &to.upgrades); err != nil {
		t.Fatal(err)
	}
	p := open.all[0]
	go func() { _ = p.serve(p.listener) }()
	conn := dial(t, "http://"+p.line)
	if resp, _ := conn.send(t, upgrade); resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d, want 101", resp.StatusCode)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := p.end(ctx); err == nil {
		t.Error("it ended by itself, while a connection was in use")
	}
	if _, err := conn.answers.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the client reads %v: want the end", err)
	}
	to.upgrades.Wait()
}

// At the end, a connection that has become another protocol's goes on as a request under way does.
func TestServeFinishesUpgraded(t *testing.T) {
	upstream := switching(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
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
	conn := dial(t, url)
	if resp, _ := conn.send(t, upgrade); resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("status %d, want 101", resp.StatusCode)
	}
	stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); { // until nobody listens
		refused, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			break
		}
		_ = refused.Close()
	}
	for range 3 {
		select {
		case code := <-exit:
			t.Fatalf("ended with %d while a connection was in use", code)
		case <-time.After(300 * time.Millisecond):
		}
		got := make([]byte, 5)
		conn.write(t, "hello")
		if _, err := io.ReadFull(conn.answers, got); err != nil || string(got) != "hello" {
			t.Fatalf("%q, %v: want an echo", got, err)
		}
	}
	_ = conn.Close()
	if code := <-exit; code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
}
