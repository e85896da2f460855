package httplimit_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/policy"
)

// served answers with the pattern of the handler that was reached.
type served string

func (s served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Served", string(s))
}

// raw is a request as a server reads it, with any target that a client may write.
func raw(t *testing.T, method, target, host string) *http.Request {
	t.Helper()
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, target, host)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	r.RemoteAddr = "192.0.2.1:1"
	return r
}

func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// All spellings of a path that reach one handler share its bucket.
func TestMustAliasesShareABucket(t *testing.T) {
	aliases := []string{"/a/b", "/a//b", "/a/./b", "/a/%62", "/a/b?x=1", "//a/b", "/x/../a/b", "/%61/b", "/../a/b", "/a/b?", "/a/b/../b", "http://other/a/b"}
	rules := newRules(t, policy.RuleConfig{Name: "ab", Match: "/a/b", Limits: []policy.LimitConfig{limit(t, "fixed_window", "5/min", "ip")}})
	mux := http.NewServeMux()
	mux.Handle("/a/b", served("/a/b"))
	h := wrap(rules, newStore(newClock()), mux)
	reached, refused := 0, 0
	for _, alias := range aliases {
		for range 2 {
			resp := serve(h, raw(t, "GET", alias, "h"))
			switch {
			case resp.Header.Get("Served") != "":
				reached++
			case resp.StatusCode == http.StatusTooManyRequests:
				refused++
			case resp.StatusCode >= 400:
				t.Errorf("%s: %d", alias, resp.StatusCode)
			}
		}
	}
	if reached > 5 || reached+refused < len(aliases) {
		t.Errorf("%d requests reached the handler and %d were refused: want at most 5, and all others refused or redirected", reached, refused)
	}
}

// Whatever path a client writes: if net/http's router serves it by a pattern, the rule of that pattern has counted it.
// (Left out: CONNECT, whose path that router does not clean, and hosts in
// upper case, which it takes for others.)
func TestMustCountWhatIsServed(t *testing.T) {
	patterns := []string{"/a/b", "/a/{x}", "/users/{id}", "POST /users/{id}", "/users/{id}/b", "/files/{path...}", "/files/b/{$}", "/tree/", "h.example/a/b", "/{$}"}
	mux := http.NewServeMux()
	var configs []policy.RuleConfig
	name := map[string]string{} // of the rule of a pattern
	for i, p := range patterns {
		mux.Handle(p, served(p))
		name[p] = fmt.Sprintf("r%d", i)
		configs = append(configs, policy.RuleConfig{Name: name[p], Match: p, Limits: []policy.LimitConfig{limit(t, "fixed_window", "1000000/h", "ip")}})
	}
	store := newStore(newClock())
	h := wrap(newRules(t, configs...), store, mux)

	random := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", "b", "%61", "%62", "", ".", "..", "%2e", "%2e%2e", "%2F", "a%2Fb", "x", "1", "%31", "users", "%75sers", "files", "files/b", "tree", "A", "b;v=1", "%00", "ä", "b%20"}
	methods := []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "PROPFIND"}
	hosts := []string{"h", "h.example", "h.example:80", "[::1]:80"}
	reached := map[string]int{}
	for range 50_000 {
		var target strings.Builder
		for range 1 + random.IntN(4) {
			target.WriteString("/" + parts[random.IntN(len(parts))])
		}
		if random.IntN(4) == 0 {
			target.WriteString("/")
		}
		if random.IntN(4) == 0 {
			target.WriteString("?x=/a/b")
		}
		method, host := methods[random.IntN(len(methods))], hosts[random.IntN(len(hosts))]
		resp := serve(h, raw(t, method, target.String(), host))
		pattern := resp.Header.Get("Served")
		if pattern == "" {
			continue
		}
		reached[pattern]++
		if got := resp.Header.Get("RateLimit-Policy"); !strings.HasPrefix(got, `"`+name[pattern]+`";`) {
			t.Errorf("%s %s%s is served by %q and counted as %q", method, host, target.String(), pattern, got)
		}
	}
	for _, p := range patterns {
		if reached[p] < 20 {
			t.Errorf("%q was reached %d times: the test hardly tries it", p, reached[p])
		}
	}
	if n := store.Len(); n != len(patterns) {
		t.Errorf("%d keys, want one for each of %d rules: keys do not grow by path", n, len(patterns))
	}
}
