package httplimit_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// perAddress is one request an hour for each address, behind the proxies of 10.0.0.0/8 and 2001:db8:ff::/48.
func perAddress(t *testing.T, next http.Handler) http.Handler {
	t.Helper()
	rules, err := policy.New(policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ff::/48")},
		Rules:          []policy.RuleConfig{{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "ip")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return wrap(rules, newStore(newClock()), next)
}

// forwarded are the fields by which clients and proxies name other addresses.
var forwarded = []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Original-Forwarded-For", "Via"}

// claim is an address that a client may make up, or not even one.
func claim(random *rand.Rand) string {
	switch random.IntN(8) {
	case 0:
		return "10.0.0.1" // a trusted one
	case 1:
		return fmt.Sprintf("[2001:db8:%x::1]:443", random.IntN(1<<16))
	case 2:
		return fmt.Sprintf("::ffff:198.51.100.%d", random.IntN(256))
	case 3:
		return []string{"", "unknown", "localhost", "_hidden", "for=192.0.2.60;proto=http", "%", "\x00", "2001:db8:ff::1"}[random.IntN(8)]
	}
	return fmt.Sprintf("198.51.%d.%d", random.IntN(256), random.IntN(256))
}

// What a peer that is no trusted proxy says of other addresses changes nothing.
func TestMustNotBelieveClients(t *testing.T) {
	for _, peer := range []string{"203.0.113.9:1", "[2001:db8::9]:1", "@"} {
		next := &counter{}
		h, random := perAddress(t, next), rand.New(rand.NewPCG(5, 6))
		for range 1000 {
			get(h, "/", from(peer), func(r *http.Request) {
				for range random.IntN(4) {
					r.Header.Add(forwarded[random.IntN(len(forwarded))], strings.Join([]string{claim(random), claim(random)}, ", "))
				}
			})
		}
		if n := next.calls.Load(); n != 1 {
			t.Errorf("%s passes %d times: want once, whatever it claims", peer, n)
		}
	}
}

// Behind trusted proxies the client is who they saw: what it wrote left of that changes nothing, and nobody shares its bucket.
func TestMustBelieveTrustedProxies(t *testing.T) {
	next := &counter{}
	h, random := perAddress(t, next), rand.New(rand.NewPCG(7, 8))
	for i := range 100 {
		client := fmt.Sprintf("192.0.2.%d", i)
		for range 20 {
			get(h, "/", from([]string{"10.1.2.3:1", "[2001:db8:ff::1]:1", "[::ffff:10.0.0.9]:1"}[random.IntN(3)]), func(r *http.Request) {
				for range random.IntN(3) {
					r.Header.Add("X-Forwarded-For", claim(random))
				}
				seen := client
				if random.IntN(2) == 0 {
					seen = claim(random) + "," + client + ", 10.0.0.2"
				}
				r.Header.Add("X-Forwarded-For", seen)
				r.Header.Add("X-Real-Ip", claim(random))
			})
		}
		if n := next.calls.Load(); n != int64(i)+1 {
			t.Fatalf("%d clients passed %d times: want once each", i+1, n)
		}
	}
}

// Whoever has a /64 has one bucket, directly and behind a proxy; the next /64 has another.
func TestMustShareAPrefix(t *testing.T) {
	next := &counter{}
	h, random := perAddress(t, next), rand.New(rand.NewPCG(9, 10))
	for network := range 10 {
		for i := range 200 {
			a := netip.MustParseAddr(fmt.Sprintf("2001:db8:1:%x:%x:%x:%x:%x", network,
				random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16), random.IntN(1<<16)))
			if i%2 == 0 {
				get(h, "/", from(netip.AddrPortFrom(a, 1).String()))
			} else {
				get(h, "/", from("10.0.0.1:1"), with("X-Forwarded-For", a.StringExpanded()))
			}
		}
		if n := next.calls.Load(); n != int64(network)+1 {
			t.Fatalf("%d networks passed %d times: want once each", network+1, n)
		}
	}
}

// HEAD is charged as GET by a GET rule, and its denial has the fields of GET's and no body.
func TestMustChargeHead(t *testing.T) {
	for _, style := range []policy.Headers{policy.HeadersDraft, policy.HeadersX, policy.HeadersOff} {
		rules := newRules(t, policy.RuleConfig{Name: "r", Match: "GET /x", Limits: []policy.LimitConfig{limit(t, "fixed_window", "3/min", "ip")}})
		next := &counter{}
		h := httplimit.New(httplimit.Options{Rules: rules, Stores: everywhere(newStore(newClock())), Style: style}).Wrap(next)
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		var denied [2]http.Header
		for i, method := range []string{"HEAD", "GET", "HEAD", "GET", "HEAD"} {
			r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || method == "HEAD" && len(b) > 0 {
				t.Errorf("%s: body %q, %v", method, b, err)
			}
			want := http.StatusOK
			if i >= 3 {
				want = http.StatusTooManyRequests
				resp.Header.Del("Date")
				denied[i-3] = resp.Header
			}
			wantStatus(t, resp, want)
		}
		if fmt.Sprint(denied[0]) != fmt.Sprint(denied[1]) {
			t.Errorf("style %s: a denied GET has %v and a denied HEAD %v", style, denied[0], denied[1])
		}
		if n := next.calls.Load(); n != 3 {
			t.Errorf("style %s: next ran %d times, want 3", style, n)
		}
	}
}

// A preflight passes uncounted, without rate fields, also where all else is denied. It buys nothing: only an OPTIONS with
// both of its fields is one.
func TestMustNotChargePreflights(t *testing.T) {
	preflight := func(r *http.Request) {
		r.Header.Set("Origin", "https://shop.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
	}
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "5/min", "ip")}})
	store := newStore(newClock())
	h := wrap(rules, store, &counter{})
	for range 100 {
		resp := do(h, http.MethodOptions, "/", preflight)
		wantStatus(t, resp, 200)
		wantField(t, resp, "RateLimit", "")
		wantField(t, resp, "RateLimit-Policy", "")
	}
	if n := store.Len(); n != 0 {
		t.Errorf("%d keys after preflights alone", n)
	}
	passed := 0
	for range 10 {
		for _, method := range []string{"GET", "HEAD", "POST", "options", "TRACE", "CONNECT"} {
			if do(h, method, "/", preflight).StatusCode == 200 {
				passed++
			}
		}
	}
	if passed != 5 {
		t.Errorf("%d requests with a preflight's fields pass: want 5", passed)
	}
	wantStatus(t, do(h, http.MethodOptions, "/", preflight), 200)
}
