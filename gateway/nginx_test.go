package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/internal/child"
)

// nginxProgram returns the path of nginx; it skips the test where there is none, unless CI is set.
func nginxProgram(t *testing.T) string {
	t.Helper()
	name := os.Getenv("NGINX")
	if name == "" {
		name = "nginx"
	}
	for _, candidate := range []string{name, "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no nginx in PATH (Debian: apt-get install nginx-light)")
	}
	t.Skip("no nginx in PATH: the check is not tested behind a real one (Debian: apt-get install nginx-light)")
	return ""
}

// startNginx runs nginx on a configuration until the test ends, and returns its URL. The configuration listens on
// 127.0.0.1:8088; edits are old, new, old, new.
func startNginx(t *testing.T, config string, edits ...string) string {
	t.Helper()
	program, dir := nginxProgram(t), t.TempDir()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	edits = append(edits, "127.0.0.1:8088", address, "http {", fmt.Sprintf(`http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;`, dir))
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(string(text), edits[i]) {
			t.Fatalf("%s has no %q", config, edits[i])
		}
	}
	own := strings.NewReplacer(edits...).Replace(string(text))
	path := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "error.log")
	cmd := exec.Command(program, "-p", dir, "-e", log, "-c", path, "-g", fmt.Sprintf("daemon off; master_process off; pid %s/pid;", dir))
	process, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address
		}
		if process.Ended() || time.Now().After(deadline) {
			said, _ := os.ReadFile(log)
			t.Fatalf("nginx does not listen: %s", said)
		}
	}
}

// behindNginx is a service behind the nginx of the example, and Sluice beside it.
type behindNginx struct {
	url   string
	check *httptest.Server
	asked *atomic.Pointer[http.Request] // what the last check was about
}

// lenient is what the example does while Sluice is away; without it requests are refused then.
const lenient = "            error_page 500 502 503 504 = @sluice_is_away;\n"

func startBehindNginx(t *testing.T, edits ...string) behindNginx {
	t.Helper()
	rules, err := os.ReadFile("../examples/nginx/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, strings.Replace(string(rules), "match: /\n", "match: /\n    deny: ['header:X-Key=bad']\n", 1))
	checks, err := gateway.Check(s, gateway.CheckOptions{DenyStatus: 403, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Pointer[http.Request]
	check := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(gateway.Original(r))
		checks.ServeHTTP(w, r)
	}))
	t.Cleanup(check.Close)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/status/%d", &status); err != nil {
			status = http.StatusOK
		}
		w.Header().Set("X-Service", "yes")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "the service says %d", status)
	}))
	t.Cleanup(backend.Close)
	edits = append(edits, "127.0.0.1:9181", check.Listener.Addr().String(), "127.0.0.1:9000", backend.Listener.Addr().String())
	return behindNginx{startNginx(t, "../examples/nginx/nginx.conf", edits...), check, &asked}
}

// send sends the text of a request as it stands.
func (b behindNginx) send(t *testing.T, text string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

func (b behindNginx) do(t *testing.T, method, path string, fields ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

// A client behind a real nginx gets the refusal with its fields, and the service's own answers as they are.
func TestNginx(t *testing.T) {
	b := startBehindNginx(t)
	for i, want := range []int{200, 200, 200, 429, 429} {
		resp := b.do(t, "POST", "/login?next=/home", "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
		if resp.StatusCode != want {
			t.Errorf("login %d: status %d, want %d", i, resp.StatusCode, want)
		}
		h := resp.Header
		if got := h.Get("RateLimit-Policy"); got != `"login";q=5;w=60` {
			t.Errorf("login %d: RateLimit-Policy %q", i, got)
		}
		if !strings.HasPrefix(h.Get("RateLimit"), `"login";r=`) || len(h.Values("RateLimit")) != 1 {
			t.Errorf("login %d: RateLimit %q", i, h.Values("RateLimit"))
		}
		if refused := want == 429; refused != (h.Get("Retry-After") != "") || refused != (h.Get("Cache-Control") == "no-store") ||
			refused != (h.Get("Content-Type") == "application/problem+json") || refused == (h.Get("X-Service") == "yes") {
			t.Errorf("login %d: fields %v", i, h)
		}
	}
	for _, status := range []int{200, 404, 401, 403, 429, 500, 502, 503} {
		resp := b.do(t, "GET", fmt.Sprintf("/status/%d", status))
		if resp.StatusCode != status || resp.Header.Get("X-Service") != "yes" {
			t.Errorf("the service's own %d: status %d, fields %v", status, resp.StatusCode, resp.Header)
		}
		if !strings.HasPrefix(resp.Header.Get("RateLimit"), `"api";r=`) {
			t.Errorf("the service's own %d: RateLimit %q", status, resp.Header.Get("RateLimit"))
		}
	}
	if resp := b.do(t, "GET", "/", "X-Key", "bad"); resp.StatusCode != 403 || resp.Header.Get("X-Service") != "" {
		t.Errorf("listed: status %d, want 403", resp.StatusCode)
	}
	for _, field := range []string{"X-Forwarded-Uri", "X-Forwarded-Method", "X-Original-URI", "X-Original-Method", "X-Original-Host"} {
		if resp := b.do(t, "POST", "/login", field, "/free"); resp.StatusCode != 429 {
			t.Errorf("a client with %s: status %d, want 429", field, resp.StatusCode)
		}
	}
}

// The path that the rules match is the one by which nginx picks a location, however it is spelled.
func TestNginxReadsTheSamePath(t *testing.T) {
	const passing = "            error_page 403 = @refused;\n"
	b := startBehindNginx(t, passing, passing+"            add_header X-Location $uri always;\n")
	for _, c := range []struct {
		target  string
		refused bool // it says one path to nginx and another to most services
	}{
		{target: "/login"}, {"/login#x", true}, {"/login#x?y", true}, {"/login?x#y", true}, {"/login/#", true}, {"/#/login", true},
		{"/a/.#x", true}, {"/a/..?x#", true}, {target: "/login%23x"}, {target: "/login%3Fx?y"}, {target: "/login%25"}, {target: "/%6Cogin"},
		{target: "//login"}, {target: "/x//y///"}, {target: "/x/./y"}, {target: "/x/../login"}, {target: "/x/y/.."}, {target: "/x/."}, {target: "/..."},
		{target: "/login;x=1/y"}, {target: `/x\..\login`}, {target: "/x%5C..%5Clogin"}, {target: "/a+b"}, {target: "/a%20b"}, {target: "/%C3%A9%FF"},
		{target: "/a%2Fb"}, {target: "/%2Flogin"}, {target: "/a%2F%2Fb/"}, {target: "/a%2F"}, {target: "http://shop.example/login"}, {target: "http://shop.example?x"}, {"/adm/{/%2e%2e/%2e%2e/x", true},
		{"/x/%2e%2e/login", true}, {"/x/.%2e/login", true}, {"/x%2F..%2Flogin", true}, {"/x/%2e", true}, {"/x%2F.", true},
	} {
		b.asked.Store(nil)
		resp := b.send(t, "GET "+c.target+" HTTP/1.1\r\nHost: Shop.example:8088\r\nConnection: close\r\n\r\n")
		asked := b.asked.Load()
		switch {
		case c.refused:
			if resp.StatusCode != 403 || asked != nil {
				t.Errorf("%s: status %d, asked about %v; want 403", c.target, resp.StatusCode, asked)
			}
		case resp.StatusCode != 200 || asked == nil:
			t.Errorf("%s: status %d, asked about %v; want 200", c.target, resp.StatusCode, asked)
		case asked.URL.Path != resp.Header.Get("X-Location") || asked.Host != "shop.example":
			t.Errorf("%s: matched as %q of %q, nginx says %q of shop.example", c.target, asked.URL.Path, asked.Host, resp.Header.Get("X-Location"))
		}
	}
}

// No header of a client's makes an error of its check: what can't be read is refused, and what can is counted.
func TestNginxRefusesWhatCannotBeRead(t *testing.T) {
	b := startBehindNginx(t)
	for _, c := range []struct {
		header string
		want   int
	}{
		{"Host: shop.example\r\nX-Key: \x01", 400}, {"Host: shop.example\r\nX-Key: \x7f", 400},
		{`Host: a"b`, 200}, {"Host: a{b}", 200}, {"Host: a|b^c", 200}, {"Host: shop.example\r\nX-Key: \xff", 200},
		{"Host: shop.example\r\nX-Key: bad", 403}, {"Host: shop.example\r\nExpect: nonsense", 200},
	} {
		resp := b.send(t, "GET / HTTP/1.1\r\n"+c.header+"\r\nConnection: close\r\n\r\n")
		if resp.StatusCode != c.want || (resp.Header.Get("X-Service") == "yes") != (c.want == 200) || (resp.Header.Get("RateLimit") != "") != (c.want == 200) {
			t.Errorf("%q: status %d, want %d: %v", c.header, resp.StatusCode, c.want, resp.Header)
		}
	}
	if resp := b.send(t, "GET / HTTP/1.0\r\n\r\n"); resp.StatusCode != 200 || resp.Header.Get("RateLimit") == "" {
		t.Errorf("HTTP/1.0 without a Host: status %d, want 200: %v", resp.StatusCode, resp.Header)
	}
}

// While Sluice is away, and when it comes to an error, nginx does as its configuration says.
func TestNginxWithoutSluice(t *testing.T) {
	for name, c := range map[string]struct {
		edits []string
		want  int
	}{
		"requests pass":        {nil, 200},
		"requests are refused": {[]string{lenient, ""}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			b := startBehindNginx(t, c.edits...)
			for range 3 {
				b.do(t, "POST", "/login")
			}
			if resp := b.do(t, "POST", "/login"); resp.StatusCode != 429 {
				t.Errorf("status %d before, want 429", resp.StatusCode)
			}
			b.check.Close()
			resp := b.do(t, "POST", "/login")
			if resp.StatusCode != c.want || (resp.Header.Get("X-Service") == "yes") != (c.want == 200) {
				t.Errorf("status %d, want %d: %v", resp.StatusCode, c.want, resp.Header)
			}
			if resp := b.do(t, "GET", "/status/500"); c.want == 200 && resp.Header.Get("X-Service") != "yes" {
				t.Errorf("the service's own 500 is not the service's: %v", resp.Header)
			}
		})
	}
}
