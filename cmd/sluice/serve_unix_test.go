//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A running process takes its rules from the file again when it changes and on SIGHUP, and says what came of it.
func TestServeReloads(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	edit := func(text string) {
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(oneRule)
	ctx, stop := context.WithCancel(t.Context())
	log, exit := &journal{}, make(chan int, 1)
	r, w := io.Pipe()
	go func() {
		exit <- run(ctx, []string{"serve", rules, "--listen", "127.0.0.1:0", "--admin", "off"}, w, log)
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	url, _, _ := strings.Cut(strings.TrimPrefix(line, "listening on "), ",")
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if code := <-exit; code != 0 {
			t.Errorf("exit %d: %s", code, log)
		}
		_ = w.Close()
	}()
	hangup := func() { // to this process, where the command waits for it
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	left := func(when, want string) {
		t.Helper()
		resp, _ := get(t, url+"/limited")
		if got := resp.Header.Get("RateLimit-Policy") + " " + resp.Header.Get("RateLimit"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}

	left("at first", `"last";q=1;w=3600 "last";r=0;`)
	log.forget()
	edit(strings.Replace(oneRule, "1/h", "7/h", 1))
	log.await(t, `msg="sluice: rules"`)
	left("after an edit", `"last";q=7;w=3600 "last";r=5;`)

	log.forget()
	hangup()
	log.await(t, `msg="sluice: rules"`)
	left("after SIGHUP", `"last";q=7;w=3600 "last";r=4;`)

	log.forget()
	edit(strings.Replace(oneRule, "1/h", "none", 1))
	log.await(t, rules+":2:") // line 2
	log.forget()
	hangup()
	log.await(t, rules+":2:")
	left("after a faulty edit", `"last";q=7;w=3600 "last";r=3;`)
}
