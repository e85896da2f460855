package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The playground is served on loopback until the program is told to end.
func TestLabPlayServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, out := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"lab", "play", "--addr", "127.0.0.1:0"}, out, &errs) }()

	line := make([]byte, 100)
	n, err := read.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(line[:n]))
	for name, kind := range map[string]string{"": "text/html", "main.js": "text/javascript", "sluice.wasm": "application/wasm"} {
		res, err := http.Get(url + name)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), kind) || len(content) < 500 {
			t.Errorf("%s%s: %d, %s, %d bytes, %v", url, name, res.StatusCode, res.Header.Get("Content-Type"), len(content), err)
		}
	}
	cancel()
	select {
	case exit := <-ended:
		if exit != 0 {
			t.Errorf("exit %d: %s", exit, &errs)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it serves on")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestLabPlayExports(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "public")
	var out, errs bytes.Buffer
	if exit := run(t.Context(), []string{"lab", "play", "--export", folder}, &out, &errs); exit != 0 {
		t.Fatalf("exit %d: %s", exit, &errs)
	}
	for _, name := range []string{"index.html", "main.js", "sluice.wasm", "wasm_exec.js"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(out.String(), folder) {
		t.Errorf("it says %q", &out)
	}
}

func TestLabPlayExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args     []string
		exit     int
		out, err string
	}{
		{[]string{"--help"}, 0, "sluice lab play --export public", ""},
		{[]string{"--addr", taken.Addr().String()}, 1, "", "--addr"},
		{[]string{"--addr", "nowhere"}, 1, "", "--addr"},
		{[]string{"--export", file}, 1, "", "export"},
		{[]string{"more"}, 2, "", "more"},
	} {
		var out, errs bytes.Buffer
		if exit := run(t.Context(), append([]string{"lab", "play"}, c.args...), &out, &errs); exit != c.exit {
			t.Errorf("%v: exit %d, want %d", c.args, exit, c.exit)
		}
		if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
			t.Errorf("%v: stdout %q, stderr %q", c.args, &out, &errs)
		}
	}
}
