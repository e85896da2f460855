package policy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/policy"
)

// from returns a GET request of a peer, with headers given as name, value, name, value.
func from(peer string, headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = peer
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestCase_L3_PortIsDropped(t *testing.T) {
	ip := policy.IP()
	for port := 1000; port < 1010; port++ {
		if got := ip(from(fmt.Sprintf("192.0.2.1:%d", port))); got != "192.0.2.1" {
			t.Errorf("port %d: got %q, want 192.0.2.1", port, got)
		}
	}
	for peer, want := range map[string]string{
		"[2001:db8::1]:1": "2001:db8::/64",
		"[2001:db8::1]":   "2001:db8::/64",
		"2001:db8::1":     "2001:db8::/64",
		"192.0.2.1":       "192.0.2.1",
		"@":               "unknown",
		"":                "unknown",
		"/run/app.sock":   "unknown",
		"[":               "unknown",
		"[]:":             "unknown",
		":80":             "unknown",
		"localhost:80":    "unknown",
		"192.0.2.1:http":  "unknown",
		"192.0.2.1]:80":   "unknown",
		"[192.0.2.1]x":    "unknown",
	} {
		if got := ip(from(peer)); got != want {
			t.Errorf("RemoteAddr %q: got %q, want %q", peer, got, want)
		}
	}
}

func TestCase_L5_EqualAddressesAreEqualSubjects(t *testing.T) {
	for _, tt := range []struct {
		want  string
		peers []string
	}{
		{"1.2.3.4", []string{"1.2.3.4:1", "[::ffff:1.2.3.4]:1", "[::ffff:102:304]:1", "[::FFFF:0102:0304]:1", "[0:0:0:0:0:ffff:102:304]:1"}},
		{"2001:db8:1234:5678::/64", []string{
			"[2001:db8:1234:5678::1.2.3.4]:1", "[2001:DB8:1234:5678::1]:1", "[2001:0db8:1234:5678:0:0:0:9]:1", "[2001:db8:1234:5678:ffff::]:1",
		}},
		{"fe80::/64", []string{"[fe80::1%eth0]:1", "[fe80::1%1]:1", "[fe80::1]:1", "fe80::1%eth0"}},
	} {
		for _, peer := range tt.peers {
			if got := policy.IP()(from(peer)); got != tt.want {
				t.Errorf("RemoteAddr %q: got %q, want %q", peer, got, tt.want)
			}
		}
	}
}

func TestCase_L7_AbsentSubjectFallsBackToAddress(t *testing.T) {
	rules := mustRules(t, policy.RuleConfig{Name: "api", Match: "/", Limits: []policy.LimitConfig{perMinute("header:X-API-Key")}})
	subject := func(r *http.Request) string { return rules.Match(r)[0].Asks(r, 1)[0].Key.Subject }
	for _, headers := range [][]string{nil, {"X-API-Key", ""}, {"X-API-Key", " \t"}} {
		a, b := subject(from("192.0.2.1:1", headers...)), subject(from("192.0.2.2:1", headers...))
		if a != "192.0.2.1" || b != "192.0.2.2" {
			t.Errorf("headers %q: got %q and %q, want the two addresses", headers, a, b)
		}
	}
	a, b := subject(from("192.0.2.1:1", "X-API-Key", "s3cret")), subject(from("192.0.2.2:1", "x-api-key", "s3cret"))
	if a != b || strings.Contains(a, "s3cret") || !strings.HasPrefix(a, "header:") || len(a) != len("header:")+32 {
		t.Errorf("got %q and %q, want one hash after header:", a, b)
	}
	sum := sha256.Sum256([]byte("X-Api-Key\x00s3cret"))
	if want := "header:" + hex.EncodeToString(sum[:16]); a != want {
		t.Errorf("got %q, want %q: a released key never changes", a, want)
	}
}

func TestTrustedProxies(t *testing.T) {
	trusted := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ff::/48"), netip.MustParsePrefix("::ffff:172.16.0.0/108"),
	}
	const proxy = "10.0.0.1:9"
	for _, tt := range []struct {
		name, peer string
		lines      []string // of X-Forwarded-For
		want       string
	}{
		{"no header", proxy, nil, "10.0.0.1"},
		{"one client", proxy, []string{"192.0.2.1"}, "192.0.2.1"},
		{"peer not trusted", "192.0.2.9:9", []string{"192.0.2.1"}, "192.0.2.9"},
		{"peer without address", "@", []string{"192.0.2.1"}, "unknown"},
		{"forged on the left", proxy, []string{"198.51.100.7, 192.0.2.1"}, "192.0.2.1"},
		{"forged trusted on the left", proxy, []string{"198.51.100.7, 10.9.9.9, 192.0.2.1"}, "192.0.2.1"},
		{"through two proxies", proxy, []string{"192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		{"forged line before", proxy, []string{"198.51.100.7", "192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		{"lines are joined", proxy, []string{"192.0.2.1", "10.0.0.3", "10.0.0.2"}, "192.0.2.1"},
		{"all trusted", proxy, []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"garbage on the right", proxy, []string{"192.0.2.1, nonsense"}, "10.0.0.1"},
		{"garbage behind a proxy", proxy, []string{"192.0.2.1, nonsense, 10.0.0.2"}, "10.0.0.2"},
		{"empty element", proxy, []string{"192.0.2.1,, 10.0.0.2"}, "10.0.0.2"},
		{"empty line", proxy, []string{"192.0.2.1", ""}, "10.0.0.1"},
		{"unknown", proxy, []string{"unknown"}, "10.0.0.1"},
		{"leading zeros", proxy, []string{"192.000.002.001"}, "10.0.0.1"},
		{"port", proxy, []string{"192.0.2.1:4711"}, "192.0.2.1"},
		{"brackets and port", proxy, []string{"[2001:db8::1]:4711"}, "2001:db8::/64"},
		{"brackets", proxy, []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"bare v6", proxy, []string{"2001:db8::1"}, "2001:db8::/64"},
		{"mapped client", proxy, []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		{"mapped proxy", "[::ffff:10.0.0.1]:9", []string{"192.0.2.1, ::ffff:10.0.0.2"}, "192.0.2.1"},
		{"mapped prefix", "172.16.3.4:9", []string{"192.0.2.1"}, "192.0.2.1"},
		{"v6 proxy", "[2001:db8:ff::1%eth0]:9", []string{"192.0.2.1\t,\t2001:db8:ff::2"}, "192.0.2.1"},
		{"more hops than any chain has", proxy, []string{"192.0.2.1" + strings.Repeat(",10.0.0.2", 100)}, "10.0.0.2"},
		{"huge element", proxy, []string{strings.Repeat("1", 1<<20)}, "10.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := from(tt.peer)
			if tt.lines != nil {
				r.Header["X-Forwarded-For"] = tt.lines
			}
			if got := policy.IP(trusted...)(r); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestForwardedIsNotReadWithoutTrust(t *testing.T) {
	r := from("192.0.2.9:9", "X-Forwarded-For", "192.0.2.1", "X-Real-IP", "192.0.2.2", "Forwarded", "for=192.0.2.3")
	if got := policy.IP()(r); got != "192.0.2.9" {
		t.Errorf("got %q, want the peer", got)
	}
}

func TestIPKeepsItsOwnPrefixes(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	ip := policy.IP(trusted...)
	trusted[0] = netip.MustParsePrefix("192.0.2.0/24")
	if got := ip(from("192.0.2.9:9", "X-Forwarded-For", "198.51.100.1")); got != "192.0.2.9" {
		t.Errorf("got %q: a change of the caller's slice changed whom IP trusts", got)
	}
}

func TestIPPrefix(t *testing.T) {
	for bits, want := range map[int]string{
		48: "2001:db8:1::/48", 56: "2001:db8:1:200::/56", 128: "2001:db8:1:203::1/128", 1: "::/1",
		0: "2001:db8:1:203::/64", -1: "2001:db8:1:203::/64", 129: "2001:db8:1:203::/64",
	} {
		ip := policy.IPPrefix(bits)
		if got := ip(from("[2001:db8:1:203::1]:1")); got != want {
			t.Errorf("%d bits: got %q, want %q", bits, got, want)
		}
		if got := ip(from("192.0.2.1:1")); got != "192.0.2.1" {
			t.Errorf("%d bits: got %q for IPv4", bits, got)
		}
	}
}

func TestSubjectsOfARequest(t *testing.T) {
	r := httptest.NewRequest("GET", "http://shop.example/?key=k&other=o&bad=%zz&semi=a;b&key=second&blank=%20&e%6Bc=dec", nil)
	r.Header.Set("Cookie", "sid=k; blank=; sid=second")
	r.Header.Add("X-API-Key", "k")
	r.Header.Add("X-API-Key", "second")
	for name, s := range map[string]policy.Subject{
		"header":       policy.Header("X-API-Key"),
		"header host":  policy.Header("host"),
		"cookie":       policy.Cookie("sid"),
		"query":        policy.Query("key"),
		"query coded":  policy.Query("ekc"),
		"other name":   policy.Query("other"),
		"global":       policy.Global(),
		"ip":           policy.IP(),
		"header of ip": policy.Or(policy.Header("X-None"), policy.IP()),
	} {
		if s(r) == "" {
			t.Errorf("%s: no subject", name)
		}
	}
	for name, s := range map[string]policy.Subject{
		"header": policy.Header("X-None"), "cookie": policy.Cookie("none"), "query": policy.Query("none"),
		"blank cookie": policy.Cookie("blank"), "blank query": policy.Query("blank"), "bad query": policy.Query("bad"),
		"query of form semicolons": policy.Query("semi"), "path": policy.Path("id"), "path of no name": policy.Path(""),
	} {
		if got := s(r); got != "" {
			t.Errorf("absent %s: got %q", name, got)
		}
	}
	first := httptest.NewRequest("GET", "/?key=k", nil)
	if policy.Query("key")(r) != policy.Query("key")(first) {
		t.Error("the first value of a query parameter counts, as in url.Values.Get")
	}
}

// Each kind has its own texts, so that no client can name itself what another is.
func TestKindsDoNotCollide(t *testing.T) {
	r := httptest.NewRequest("GET", "/?X-A=k&b=k", nil)
	r.Header.Set("X-A", "k")
	r.Header.Set("X-B", "k")
	r.Header.Set("Cookie", "X-A=k")
	r.SetPathValue("X-A", "k")
	r.SetPathValue("long", strings.Repeat("k", 65))
	seen := map[string]string{}
	for name, s := range map[string]policy.Subject{
		"header a": policy.Header("X-A"), "header b": policy.Header("X-B"), "cookie": policy.Cookie("X-A"),
		"query": policy.Query("X-A"), "query b": policy.Query("b"), "path": policy.Path("X-A"), "long path": policy.Path("long"),
		"global": policy.Global(), "ip": policy.IP(),
	} {
		got := s(r)
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s are both %q", name, other, got)
		}
		seen[got] = name
		if len(got) > 70 {
			t.Errorf("%s: %d bytes: keys are to be bounded", name, len(got))
		}
	}
	forged := httptest.NewRequest("GET", "/", nil)
	forged.SetPathValue("X-A", policy.Path("long")(r)[len("path#:"):])
	if policy.Path("X-A")(forged) == policy.Path("long")(r) {
		t.Error("a short path value made itself the hash of a long one")
	}
}

func TestSpellingsOfCredentials(t *testing.T) {
	auth := policy.Header("authorization")
	want := auth(from("192.0.2.1:1", "Authorization", "Bearer abc"))
	for _, same := range []string{"bearer abc", "BEARER   abc", "Bearer\tabc", " Bearer abc "} {
		if got := auth(from("192.0.2.1:1", "Authorization", same)); got != want {
			t.Errorf("%q is another subject", same)
		}
	}
	if got := auth(from("192.0.2.1:1", "Authorization", "Bearer ABC")); got == want {
		t.Error("tokens of another case are one subject")
	}
}

func TestPathBehindAMux(t *testing.T) {
	mux, got := http.NewServeMux(), ""
	mux.HandleFunc("/users/{id}", func(_ http.ResponseWriter, r *http.Request) { got = policy.Path("id")(r) })
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/users/7", nil))
	if got != "path:7" {
		t.Errorf("got %q, want path:7", got)
	}
}

func TestCase_M5_Preflight(t *testing.T) {
	for _, tt := range []struct {
		method  string
		headers []string
		want    bool
	}{
		{"OPTIONS", []string{"Origin", "https://a.example", "Access-Control-Request-Method", "GET"}, true},
		{"OPTIONS", []string{"Origin", "https://a.example"}, false},
		{"OPTIONS", []string{"Access-Control-Request-Method", "GET"}, false},
		{"OPTIONS", nil, false},
		{"GET", []string{"Origin", "https://a.example", "Access-Control-Request-Method", "GET"}, false},
	} {
		r := from("192.0.2.1:1", tt.headers...)
		r.Method = tt.method
		if got := policy.Preflight(r); got != tt.want {
			t.Errorf("%s %q: got %v", tt.method, tt.headers, got)
		}
	}
}

func FuzzIP(f *testing.F) {
	f.Add("10.0.0.1:1", "192.0.2.1, 10.0.0.2", "[::1%eth0]:80")
	f.Add("[2001:db8::1]:1", ",,,", "::ffff:1.2.3.4")
	f.Add("@", "", "[")
	ip := policy.IP(netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::/0"))
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {first, second}, "Cookie": {first}, "X-A": {second}}}
		got := ip(r)
		if got == "" || len(got) > len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128") {
			t.Errorf("got %q", got)
		}
		if got != "unknown" && !strings.Contains(got, "/") {
			if a, err := netip.ParseAddr(got); err != nil || !a.Is4() || a.String() != got {
				t.Errorf("got %q, which is no canonical IPv4 address", got)
			}
		}
		policy.Cookie("a")(r)
		policy.Header("X-A")(r)
		policy.Query("a")(r)
		policy.Path("a")(r)
	})
}
