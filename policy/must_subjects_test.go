package policy_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/policy"
)

// someAddr is a random address of the given kind, in one of its spellings.
func someAddr(random *rand.Rand, trusted bool) (a netip.Addr, text string) {
	switch v6 := random.IntN(2) == 0; {
	case v6 && trusted:
		a = netip.MustParseAddr(fmt.Sprintf("2001:db8:ff:%x::%x", random.IntN(1<<16), random.IntN(1<<16)))
	case v6:
		a = netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::%x", random.IntN(255), random.IntN(1<<16)))
	case trusted:
		a = netip.MustParseAddr(fmt.Sprintf("10.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256)))
	default:
		a = netip.MustParseAddr(fmt.Sprintf("192.0.%d.%d", random.IntN(256), random.IntN(256)))
	}
	spellings := []string{a.String(), a.StringExpanded(), strings.ToUpper(a.String()), netip.AddrPortFrom(a, 443).String()}
	if a.Is4() {
		spellings = append(spellings, "::ffff:"+a.String(), "[::ffff:"+a.String()+"]:80")
	} else {
		spellings = append(spellings, "["+a.String()+"]", a.String()+"%eth0")
	}
	return a, spellings[random.IntN(len(spellings))]
}

// The client is the first that is not trusted, from the peer leftwards, however each address is spelled and the chain is
// cut into lines.
func TestMustFindTheClient(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ff::/48")}
	ip, alone := policy.IP(trusted...), policy.IP()
	random := rand.New(rand.NewPCG(21, 22))
	for range 10_000 {
		var chain []string // as written, the client first and the peer last
		want, proxies := netip.Addr{}, random.IntN(6)
		client, text := someAddr(random, false)
		chain = append(chain, text)
		want = client
		for range proxies {
			_, text := someAddr(random, true)
			chain = append(chain, text)
		}
		for range random.IntN(4) { // what the client claims
			_, text := someAddr(random, random.IntN(2) == 0)
			chain = append([]string{text}, chain...)
		}
		peer := chain[len(chain)-1]
		r := from(peer)
		var lines []string
		for _, text := range chain[:len(chain)-1] {
			if len(lines) > 0 && random.IntN(2) == 0 {
				lines[len(lines)-1] += []string{",", ", ", " ,\t"}[random.IntN(3)] + text
			} else {
				lines = append(lines, text)
			}
		}
		r.Header["X-Forwarded-For"] = lines
		if got := ip(r); got != alone(from(want.String())) {
			t.Fatalf("peer %s, X-Forwarded-For %q: got %s, want that of %s", peer, lines, got, want)
		}
	}
}

// A peer that is no trusted proxy changes nothing by what it says of others: neither whom it counts as, nor its cost,
// nor whether it is listed.
func TestMustNotBelieveThePeer(t *testing.T) {
	rules, err := policy.New(policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Rules: []policy.RuleConfig{{
			Name: "a", Match: "/", Limits: []policy.LimitConfig{perMinute("ip")},
			Cost:   policy.CostConfig{Header: "X-Cost", Default: 3, Min: 1, Max: 100},
			Exempt: []string{"10.0.0.0/8", "198.51.100.1"}, Deny: []string{"203.0.113.0/24"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(23, 24))
	for range 10_000 {
		r := from("192.0.2.9:1")
		for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Cost", "True-Client-Ip", "X-Forwarded-Host", "X-Original-Url"} {
			for range random.IntN(3) {
				r.Header.Add(name, []string{"10.0.0.1", "198.51.100.1", "203.0.113.5", "0", "1", "-1", "1e30", "0x1", "100", "for=10.0.0.1", ""}[random.IntN(11)])
			}
		}
		rule := rules.Match(r)[0]
		if got := rule.Asks(r, 1)[0].Key.Subject; got != "192.0.2.9" {
			t.Fatalf("%q: counted as %s", r.Header, got)
		}
		if got := rule.Cost(r); got != 3 {
			t.Fatalf("%q: costs %d, want the default", r.Header, got)
		}
		if got := rule.Standing(r); got != policy.Counted {
			t.Fatalf("%q: %v", r.Header, got)
		}
	}
}

// Whatever a trusted proxy hands on as cost, a request is charged from min to max, and by default where it is no number.
func TestMustBoundTheCost(t *testing.T) {
	rules, err := policy.New(policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Rules: []policy.RuleConfig{{Name: "a", Match: "/", Limits: []policy.LimitConfig{perMinute("ip")},
			Cost: policy.CostConfig{Header: "X-Cost", Default: 5, Min: 2, Max: 100}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	cost := func(lines ...string) int64 {
		r := from("10.0.0.1:1", "X-Forwarded-For", "192.0.2.1")
		r.Header["X-Cost"] = lines
		return rules.Match(r)[0].Cost(r)
	}
	for text, want := range map[string]int64{
		"2": 2, "7": 7, "100": 100, "101": 100, " 7 ": 7, "007": 7, "99999999999999999999999999": 100,
		"1": 5, "0": 5, "-1": 5, "+7": 5, "1e30": 5, "0x1": 5, "7.0": 5, "": 5, "7,7": 5, "٧": 5, "NaN": 5, "\x00": 5,
	} {
		if got := cost(text); got != want {
			t.Errorf("X-Cost %q: costs %d, want %d", text, got, want)
		}
	}
	if got := cost("2", "2"); got != 5 {
		t.Errorf("X-Cost twice: costs %d, want the default", got)
	}
	random := rand.New(rand.NewPCG(25, 26))
	for range 10_000 {
		b := make([]byte, random.IntN(24))
		for i := range b {
			b[i] = "0123456789+-eEx.,_ \tN"[random.IntN(21)]
		}
		if got := cost(string(b)); got < 2 || got > 100 {
			t.Fatalf("X-Cost %q: costs %d", b, got)
		}
	}
}

// Two IPv6 addresses are one subject if, and only if, they share the prefix.
func TestMustShareOnePrefix(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 28))
	for _, bits := range []int{1, 32, 48, 56, 63, 64, 65, 96, 127, 128} {
		ip := policy.IPPrefix(bits)
		for range 1000 {
			var b [16]byte
			for i := range b {
				b[i] = byte(random.IntN(256))
			}
			b[0] = 0x20 // no mapped IPv4
			a := netip.AddrFrom16(b)
			bit := random.IntN(128)
			if b[bit/8] ^= 0x80 >> (bit % 8); bit == 0 {
				continue
			}
			other := netip.AddrFrom16(b)
			same := ip(from(netip.AddrPortFrom(a, 1).String())) == ip(from(netip.AddrPortFrom(other, 2).String()))
			if want := bit >= bits; same != want {
				t.Fatalf("/%d of %v and %v, which differ in bit %d: one subject %v, want %v", bits, a, other, bit, same, want)
			}
		}
	}
}

// spelled writes a path in one of the ways that reach the same handler: an escape more or less, and steps that a cleaned
// path has not.
func spelled(random *rand.Rand, path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '/':
			b.WriteString([]string{"/", "/", "//", "/./", "/x/../", "///"}[random.IntN(6)])
		case random.IntN(3) == 0:
			fmt.Fprintf(&b, []string{"%%%02X", "%%%02x"}[random.IntN(2)], c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + []string{"", "?", "?q=/other", "?q=%zz"}[random.IntN(4)]
}

// However a path is spelled, it is the same rule, key and subject.
func TestMustKeyAliasesAlike(t *testing.T) {
	perID, perName := perMinute("path:id"), perMinute("path:rest")
	rules := mustRules(t,
		policy.RuleConfig{Name: "ab", Match: "/a/b", Limits: []policy.LimitConfig{perMinute("ip")}},
		policy.RuleConfig{Name: "users", Match: "GET /users/{id}/validate", Limits: []policy.LimitConfig{perID}},
		policy.RuleConfig{Name: "files", Match: "/files/{rest...}", Limits: []policy.LimitConfig{perName}},
	)
	random := rand.New(rand.NewPCG(29, 30))
	for path, want := range map[string]string{
		"/a/b": "{ab 192.0.2.1}", "/users/7/validate": "{users path:7}", "/users/a b/validate": "{users path:a b}", "/files/x/y": "{files path:x/y}",
	} {
		for range 2000 {
			target := spelled(random, path)
			u, err := url.ParseRequestURI(strings.ReplaceAll(target, " ", "%20"))
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.URL = u
			matched := rules.Match(r)
			if len(matched) != 1 {
				t.Fatalf("%s: %d rules", target, len(matched))
			}
			if got := fmt.Sprint(matched[0].Asks(r, 1)[0].Key); got != want {
				t.Fatalf("%s: %s, want %s", target, got, want)
			}
		}
	}
}
