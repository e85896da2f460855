package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const proxiedRule = "trusted_proxies: [127.0.0.1]\n" + oneRule

// All ports of one process count on one budget, and an operator sees what came of it.
func TestServeGateway(t *testing.T) {
	url, lines := served(t, write(t, proxiedRule), "--check", "127.0.0.1:0", "--check-path", "/check", "--check-status", "403",
		"--envoy", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	var checks, envoy, admin string
	for _, line := range lines {
		for prefix, address := range map[string]*string{"checks on ": &checks, "envoy on ": &envoy, "admin on ": &admin} {
			if after, ok := strings.CutPrefix(line, prefix); ok {
				*address = after
			}
		}
	}
	original := func(client string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("X-Original-Method", "GET")
			r.Header.Set("X-Original-URI", "/limited")
			r.Header.Set("X-Forwarded-For", client)
		}
	}
	status := func(target string, edit ...func(*http.Request)) int {
		resp, _ := get(t, target, edit...)
		return resp.StatusCode
	}
	if got := status(checks+"/anything", original("192.0.2.1")); got != 200 {
		t.Errorf("the first check: %d, want 200", got)
	}
	if got := status(url+"/check", original("192.0.2.1")); got != 403 {
		t.Errorf("the second, on a path: %d, want 403", got)
	}
	if got := status(url+"/check/", original("192.0.2.1")); got != 200 {
		t.Errorf("another path is the backend's: %d, want 200", got)
	}
	conn, err := grpc.NewClient(envoy, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{{Key: "path", Value: "/limited"}, {Key: "remote_address", Value: "192.0.2.1"}},
	}}})
	if err != nil || r.OverallCode != rls.RateLimitResponse_OVER_LIMIT {
		t.Errorf("Envoy: %v %v, want OVER_LIMIT", r, err)
	}
	for _, path := range []string{"/healthz", "/readyz", "/rules", "/status", "/top", "/explain?path=/limited&ip=192.0.2.1"} {
		if got := status(admin + path); got != 200 {
			t.Errorf("%s: %d, want 200", path, got)
		}
	}
	want := `sluice_decisions_total{algorithm="fixed_window",limit="fixed_window-ip",outcome="denied",rule="last",source="local"} 2`
	if _, body := get(t, admin+"/metrics"); !strings.Contains(body, want) {
		t.Errorf("/metrics has no %s:\n%s", want, body)
	}
	if _, body := get(t, admin+"/top"); !strings.Contains(body, `"denied": 2`) {
		t.Errorf("/top: %s, want 2 denials", body)
	}
}

// Several processes share the default of --admin: those that find it taken go without. An address that was asked for is
// an error.
func TestServeAdminTaken(t *testing.T) {
	taken, err := net.Listen("tcp", defaultAdmin)
	if err == nil { // else somebody else has it, which is as good
		defer taken.Close()
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := &printed{until: "last: ", then: stop}
	var stderr bytes.Buffer
	args := []string{"serve", write(t, oneRule), "--listen", "127.0.0.1:0"}
	if code := run(ctx, args, stopped, &stderr); code != 0 || strings.Contains(stopped.String(), "admin on") {
		t.Errorf("exit %d, printed %q: %s: want no port for operators", code, stopped, &stderr)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, asked := range []string{other.Addr().String(), defaultAdmin} {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second) // where it serves after all
		defer stop()
		var stderr bytes.Buffer
		if code := run(ctx, append(args, "--admin", asked), io.Discard, &stderr); code != 1 || !strings.Contains(stderr.String(), "--admin") {
			t.Errorf("--admin %s: exit %d: %s, want 1 and the flag", asked, code, &stderr)
		}
	}
}

// printed keeps what a command prints, and calls a function once a line that begins so is there.
type printed struct {
	bytes.Buffer
	until string
	then  func()
}

func (p *printed) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte(p.until)) {
		p.then()
	}
	return p.Buffer.Write(b)
}

func TestServeMisuse(t *testing.T) {
	rules := write(t, oneRule)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second) // where one is no misuse after all
	defer stop()
	for args, want := range map[string]string{
		"--listen nonsense":                     `--listen "nonsense": want HOST:PORT`,
		"--check 127.0.0.1:1x":                  `--check "127.0.0.1:1x": want HOST:PORT`,
		"--envoy 127.0.0.1":                     "--envoy",
		"--listen 127.0.0.1:":                   `--listen "127.0.0.1:": want HOST:PORT`,
		"--check-path=":                         "--check-path: want a value",
		"--check :0 --check-status 700":         "--check-status 700: want 400 to 599",
		"--admin ::1:80":                        "--admin",
		"--listen off":                          "--check or --envoy",
		"--listen off --check off":              "--check or --envoy",
		"--check-path check":                    "--check-path",
		"--check-path /a?b":                     "--check-path",
		"--check-path /c --listen off":          "--check-path",
		"--check-status 403":                    "--check-status",
		"--check 127.0.0.1:0 --check-status 20": "--check-status 20: want 400 to 599",
		"--admin-token short":                   "Token",
		"--listen=":                             "--listen: want",
		"--check=":                              "--check: want",
		"--envoy=":                              "--envoy: want",
		"--admin=":                              "--admin: want",
		"--upstream=":                           "--upstream: want",
		"--listen off --admin=":                 "--admin: want",
		"--upstream-timeout 0s":                 "--upstream-timeout 0s",
		"--upstream-timeout=-1s":                "--upstream-timeout -1s",
	} {
		var stderr bytes.Buffer
		code := run(ctx, append([]string{"serve", rules, "--admin", "off"}, strings.Fields(args)...), io.Discard, &stderr)
		if code != 2 || !strings.Contains(stderr.String(), want) || strings.Count(stderr.String(), "want") > 1 {
			t.Errorf("%s: exit %d: %s, want 2 and %q", args, code, &stderr, want)
		}
	}
}
