package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// Whatever a client writes in what it is counted by, it has no bucket of another rule, limit, kind or value.
func TestCase_L1(t *testing.T) {
	ip, key, id := limit(t, "fixed_window", "1/h", "ip"), limit(t, "fixed_window", "1/h", "header:X-Key"), limit(t, "fixed_window", "1/h", "path:id")
	ip.Name, key.Name, id.Name = "a", "b", "c"
	rules := newRules(t,
		policy.RuleConfig{Name: "a", Match: "/a/{id}", Limits: []policy.LimitConfig{ip, key, id}},
		policy.RuleConfig{Name: "a:b", Match: "/b/{id}", Limits: []policy.LimitConfig{ip, key, id}},
		policy.RuleConfig{Name: "a.b", Match: "/c/{id}", Limits: []policy.LimitConfig{id}},
	)
	seen := map[sluice.Key]string{}
	var request string
	store := sluice.StoreFunc(func(_ context.Context, a sluice.Ask) (sluice.Decision, error) {
		if other, ok := seen[a.Key]; ok && other != request {
			t.Errorf("%q is the key of %s and of %s", a.Key, other, request)
		}
		seen[a.Key] = request
		return sluice.Decision{Allowed: true}, nil
	})
	h := wrap(rules, store, &counter{})
	values := []string{"x", "b:c", "a:b", "a/b", "192.0.2.9", "header:x", "path:x", "global", "\x00", "a\x00", "\n", "%", "%25", "{b}", "}{", "\xff\xfe", strings.Repeat("x", 64), strings.Repeat("x", 65), "path#:x"}
	for i, v := range values {
		for _, top := range []string{"a", "b", "c"} {
			request = fmt.Sprintf("/%s/%q from client %d", top, v, i)
			wantStatus(t, get(h, "/"+top+"/"+url.PathEscape(v), from(fmt.Sprintf("198.51.100.%d:1", i)), func(r *http.Request) {
				r.Header["X-Key"] = []string{"k" + v} // the same as no other's
			}), 200)
		}
	}
	if want := len(values) * (3 + 3 + 1); len(seen) != want {
		t.Errorf("%d keys, want %d", len(seen), want)
	}
}

// Equal addresses are one client, however they are spelled.
func TestCase_L5(t *testing.T) {
	for _, same := range [][]string{
		{"1.2.3.4:1", "[::ffff:1.2.3.4]:2", "[::ffff:102:304]:3", "[::FFFF:0102:0304]:4"},
		{"[2001:db8:1234:5678::1.2.3.4]:1", "[2001:DB8:1234:5678::102:304]:2", "[2001:0db8:1234:5678:0:0:0:9]:3", "[2001:db8:1234:5678::1%eth0]:4"},
	} {
		rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{limit(t, "fixed_window", "1/h", "ip")}})
		h := wrap(rules, newStore(newClock()), &counter{})
		wantStatus(t, get(h, "/", from(same[0])), 200)
		for _, addr := range same[1:] {
			wantStatus(t, get(h, "/", from(addr)), 429)
		}
		wantStatus(t, get(h, "/", from("[2001:db8:1234:5679::1]:1")), 200)
		wantStatus(t, get(h, "/", from("1.2.3.5:1")), 200)
	}
}

// No secret is in Redis, whatever the requests are counted by: not of a header, a cookie, a query or credentials.
func TestCase_L7_NoSecretInRedis(t *testing.T) {
	const secret = "s3cr3t-key"
	server := redistest.Start(t)
	client := server.Client()
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/", Limits: []policy.LimitConfig{
		limit(t, "fixed_window", "9/h", "header:X-API-Key"), limit(t, "fixed_window", "9/h", "header:Authorization"),
		limit(t, "fixed_window", "9/h", "cookie:sid"), limit(t, "fixed_window", "9/h", "query:key"),
	}})
	h := wrap(rules, redis.New(client, redis.Options{}), &counter{})
	wantStatus(t, get(h, "/?key="+secret, with("X-API-Key", secret), with("Authorization", "Bearer "+secret), with("Cookie", "sid="+secret)), 200)
	wantStatus(t, get(h, "/", from("192.0.2.1:1"), with("X-API-Key", "")), 200)
	wantStatus(t, get(h, "/", from("192.0.2.2:1"), with("X-API-Key", " ")), 200)
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 4*3 {
		t.Errorf("%d keys, want 12: a set for the secrets, and one for each address", len(keys))
	}
	if i := slices.IndexFunc(keys, func(k string) bool { return strings.Contains(k, "s3cr3t") }); i >= 0 {
		t.Errorf("a key holds the secret: %s", keys[i])
	}
}

// Spellings of a path that reach one handler share its bucket.
func TestCase_M1(t *testing.T) {
	rules := newRules(t, policy.RuleConfig{Name: "r", Match: "/a/b", Limits: []policy.LimitConfig{limit(t, "fixed_window", "3/h", "ip")}})
	mux, next := http.NewServeMux(), &counter{}
	mux.Handle("/a/b", next)
	h := wrap(rules, newStore(newClock()), mux)
	refused := 0
	for _, path := range []string{"/a/b", "/a/%62", "/a/b?x=1", "/a//b", "/a/./b", "/%61/b"} {
		if get(h, path).StatusCode == 429 {
			refused++
		}
	}
	if n := next.calls.Load(); n != 3 || refused != 3 {
		t.Errorf("the handler was reached %d times, %d refused: want 3 and 3", n, refused)
	}
}
