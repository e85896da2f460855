package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/sluice-go/sluice/gateway"
)

const checked = `trusted_proxies: [127.0.0.1, "::ffff:10.0.0.0/104"]
rules:
  - {name: login, match: "POST /login", limits: [{algorithm: fixed_window, limit: 1/day, subject: ip}]}
  - {name: host, match: "shop.example/", limits: [{algorithm: fixed_window, limit: 1/day, subject: global}]}
  - {name: own, match: /own, denial: {status: 503, body: later}, limits: [{algorithm: fixed_window, limit: 1/day, subject: ip}]}
  - {name: users, match: "/users/{id}/login", limits: [{algorithm: fixed_window, limit: 9/day, subject: ip}]}
  - {name: barred, match: /barred, deny: ["header:X-Key=bad"], limits: [{algorithm: fixed_window, limit: 9/day, subject: ip}]}
`

func checker(t *testing.T, rules string, status int) http.Handler {
	t.Helper()
	s, _ := open(t, rules)
	h, err := gateway.Check(s, gateway.CheckOptions{DenyStatus: status, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask sends a check from a peer, with fields as name, value, name, value.
func ask(h http.Handler, peer string, fields ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, "http://sluice/check", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
			continue
		}
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

const proxyPeer = "127.0.0.1:4000"

// Each ask is made on rules of its own, after the same ask was made `before` times.
func TestCheck(t *testing.T) {
	nginx := func(method, uri string, more ...string) []string {
		return append([]string{"X-Original-Method", method, "X-Original-URI", uri, "X-Forwarded-For", "192.0.2.1"}, more...)
	}
	traefik := func(method, uri string, more ...string) []string {
		return append([]string{"X-Forwarded-Method", method, "X-Forwarded-Uri", uri, "X-Forwarded-For", "192.0.2.1"}, more...)
	}
	for _, c := range []struct {
		name   string
		peer   string
		fields []string
		before int
		want   int
	}{
		{"passes", proxyPeer, nginx("POST", "/login?next=/"), 0, 200},
		{"is denied", proxyPeer, nginx("POST", "/login?next=/"), 1, 429},
		{"another method", proxyPeer, nginx("GET", "/login"), 1, 200},
		{"a path in another spelling", proxyPeer, nginx("POST", "//x/../%6Cogin"), 1, 429},
		{"an absolute URI", proxyPeer, nginx("POST", "http://shop.example/login"), 1, 429},
		{"Traefik", proxyPeer, traefik("POST", "/login"), 1, 429},
		{"a mapped network is trusted", "10.1.2.3:4000", traefik("POST", "/login"), 1, 429},
		{"an IPv4-mapped peer is trusted", "[::ffff:127.0.0.1]:4000", traefik("POST", "/login"), 1, 429},
		{"a fragment", proxyPeer, nginx("POST", "/login#x"), 1, 403},
		{"a fragment before a question mark", proxyPeer, nginx("POST", "/login#x?y"), 1, 403},
		{"a fragment after a query", proxyPeer, nginx("POST", "/login?x#y"), 1, 403},
		{"an escaped #", proxyPeer, nginx("POST", "/login%23x"), 1, 200},
		{"an escaped question mark", proxyPeer, nginx("POST", "/login%3Fx"), 1, 200},
		{"a semicolon", proxyPeer, nginx("POST", "/login;x"), 1, 200},
		{"a backslash", proxyPeer, nginx("POST", "/x\\..\\login"), 1, 200},
		{"a path up", proxyPeer, nginx("POST", "/x/y/../../login"), 1, 429},
		{"an escaped slash of nginx that makes it another rule's", proxyPeer, nginx("GET", "/%2fown"), 0, 403},
		{"an escaped slash of nginx in a segment of a rule", proxyPeer, nginx("GET", "/users/a%2Fb/login"), 0, 403},
		{"an escaped slash of nginx that changes nothing", proxyPeer, nginx("GET", "/files/a%2Fb"), 1, 200},
		{"an escaped slash of nginx in the query", proxyPeer, nginx("GET", "/own?x=%2F"), 1, 503},
		{"a query of an absolute URI without a path", proxyPeer, nginx("GET", "?x"), 1, 200},
		{"encoded dots behind a byte that is to be encoded", proxyPeer, nginx("GET", "/own{/%2e%2e/%2e%2e/free"), 0, 403},
		{"encoded dots behind such a byte of Traefik", proxyPeer, traefik("GET", "/a\xff/%2e%2e/b"), 0, 403},
		{"two hosts of Traefik", proxyPeer, traefik("GET", "/free", "X-Forwarded-Host", "a", "X-Forwarded-Host", "b"), 0, 403},
		{"an escaped slash of Traefik", proxyPeer, traefik("GET", "/%2Fown"), 1, 200},
		{"a fragment of Traefik", proxyPeer, traefik("POST", "/login#x"), 1, 403},
		{"host of nginx", proxyPeer, nginx("GET", "/", "X-Original-Host", "shop.example"), 1, 429},
		{"a host that is none", proxyPeer, nginx("GET", "/own", "X-Original-Host", `a"{b}|^`), 1, 503},
		{"host of nginx in Host", proxyPeer, nginx("GET", "/", "Host", "shop.example"), 1, 429},
		{"nginx's client can't name the host", proxyPeer, nginx("GET", "/", "X-Forwarded-Host", "shop.example"), 1, 200},
		{"host of Traefik", proxyPeer, traefik("GET", "/", "X-Forwarded-Host", "shop.example"), 1, 429},
		{"the rule's own status", proxyPeer, traefik("GET", "/own"), 1, 503},
		{"listed", proxyPeer, traefik("GET", "/barred", "X-Key", "bad"), 0, 403},
		{"a preflight", proxyPeer, traefik("OPTIONS", "/own", "Origin", "https://a.example", "Access-Control-Request-Method", "GET"), 2, 200},

		{"a peer that is no proxy", "192.0.2.9:4000", nginx("GET", "/free"), 0, 403},
		{"a peer without an address", "@", nginx("GET", "/free"), 0, 403},
		{"both", proxyPeer, nginx("POST", "/login", "X-Forwarded-Uri", "/free"), 0, 403},
		{"both methods", proxyPeer, nginx("POST", "/login", "X-Forwarded-Method", "GET"), 0, 403},
		{"the other's method", proxyPeer, traefik("POST", "/login", "X-Original-Method", "GET"), 0, 403},
		{"two hosts", proxyPeer, nginx("GET", "/free", "X-Original-Host", "a", "X-Original-Host", "b"), 0, 403},
		{"the other's host", proxyPeer, traefik("GET", "/free", "X-Original-Host", "a"), 0, 403},
		{"encoded dots", proxyPeer, nginx("POST", "/x/%2E%2e/login"), 0, 403},
		{"encoded slashes around dots", proxyPeer, nginx("POST", "/x%2f..%2Flogin"), 0, 403},
		{"an encoded dot at the end", proxyPeer, traefik("POST", "/login/%2e"), 0, 403},
		{"a fragment alone", proxyPeer, nginx("POST", "#/login"), 0, 403},
		{"two URIs", proxyPeer, nginx("POST", "/login", "X-Original-URI", "/free"), 0, 403},
		{"two methods", proxyPeer, nginx("POST", "/login", "X-Original-Method", "GET"), 0, 403},
		{"a URI that is none", proxyPeer, nginx("POST", "/%zz"), 0, 403},
		{"an empty URI", proxyPeer, nginx("POST", ""), 0, 403},
		{"a method that is none", proxyPeer, nginx("PO ST", "/login"), 0, 403},
		{"no URI", proxyPeer, []string{"X-Original-Method", "GET"}, 0, 400},
		{"no method", proxyPeer, []string{"X-Original-URI", "/login"}, 0, 400},
		{"nothing", proxyPeer, nil, 0, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := checker(t, checked, 0)
			for range c.before {
				ask(h, c.peer, c.fields...)
			}
			if got := ask(h, c.peer, c.fields...).StatusCode; got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
}

// A client is who the proxy says, and its other fields count as they would without the proxy.
func TestCheckClient(t *testing.T) {
	h := checker(t, checked, 0)
	fields := func(forwarded string) []string {
		return []string{"X-Original-Method", "POST", "X-Original-URI", "/login", "X-Forwarded-For", forwarded}
	}
	for _, c := range []struct {
		forwarded string
		want      int
	}{
		{"192.0.2.1", 200}, {"192.0.2.1", 429}, {"192.0.2.2", 200},
		{"192.0.2.3, 192.0.2.1", 429}, // the client's own invention stands left
	} {
		if got := ask(h, proxyPeer, fields(c.forwarded)...).StatusCode; got != c.want {
			t.Errorf("for %s: status %d, want %d", c.forwarded, got, c.want)
		}
	}
}

// Every refusal has the one status that the proxy knows, and says which it stands for; a check that can't be read is no
// refusal.
func TestCheckDenyStatus(t *testing.T) {
	h := checker(t, checked, 403)
	for _, c := range []struct {
		what   string
		fields []string
		want   int
		stands string
	}{
		{"passes", []string{"X-Original-Method", "GET", "X-Original-URI", "/own"}, 200, ""},
		{"denied", []string{"X-Original-Method", "GET", "X-Original-URI", "/own"}, 403, "503"},
		{"listed", []string{"X-Original-Method", "GET", "X-Original-URI", "/barred", "X-Key", "bad"}, 403, "403"},
		{"unreadable", []string{"X-Original-URI", "/own"}, 400, ""},
	} {
		resp := ask(h, proxyPeer, c.fields...)
		if got := resp.Header.Get("Sluice-Status"); resp.StatusCode != c.want || got != c.stands {
			t.Errorf("%s: status %d for %q, want %d for %q", c.what, resp.StatusCode, got, c.want, c.stands)
		}
		if c.what == "denied" && (resp.Header.Get("RateLimit") == "" || resp.Header.Get("Retry-After") == "") {
			t.Errorf("denied: fields %v, want RateLimit and Retry-After", resp.Header)
		}
	}
	s, _ := open(t, checked)
	for _, status := range []int{200, 399, 600, -1} {
		if _, err := gateway.Check(s, gateway.CheckOptions{DenyStatus: status}); err == nil {
			t.Errorf("DenyStatus %d is accepted", status)
		}
	}
}

// Nobody is trusted unless the rules say so, and a reload changes who is.
func TestCheckTrustsByTheRules(t *testing.T) {
	const rules = "rules:\n  - {name: a, match: /, limits: [{algorithm: fixed_window, limit: 9/day, subject: ip}]}\n"
	s, _ := open(t, rules)
	h, err := gateway.Check(s, gateway.CheckOptions{Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		trusted string
		want    int
	}{{"", 403}, {"trusted_proxies: [127.0.0.1]\n", 200}, {"trusted_proxies: [10.0.0.0/8]\n", 403}} {
		if err := os.WriteFile(s.Status().Path, []byte(c.trusted+rules), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ask(h, proxyPeer, "X-Original-Method", "GET", "X-Original-URI", "/").StatusCode; got != c.want {
			t.Errorf("%q: status %d, want %d", c.trusted, got, c.want)
		}
	}
}

// Whatever a client sends, a check is answered, and never by 200 for a request that is limited and used up.
func FuzzCheck(f *testing.F) {
	f.Add("POST", "/login", "192.0.2.1", "", "")
	f.Add("", "//login", "\x00", "X-Forwarded-Uri", "/free")
	f.Fuzz(func(t *testing.T, method, uri, client, name, value string) {
		h := checker(t, "trusted_proxies: [127.0.0.1]\nrules:\n  - {name: all, match: always, limits: [{algorithm: fixed_window, limit: 1/day, subject: global}]}\n", 0)
		fields := []string{"X-Original-Method", method, "X-Original-URI", uri, "X-Forwarded-For", client, name, value}
		first := ask(h, proxyPeer, fields...).StatusCode
		second := ask(h, proxyPeer, fields...).StatusCode
		if first == 200 && second != 429 && second != 200 || first != 200 && first != second {
			t.Errorf("status %d, then %d", first, second)
		}
		if first == 200 && second == 200 && !(method == "OPTIONS") {
			t.Errorf("passes twice")
		}
	})
}
