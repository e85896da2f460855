package policy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

func perMinute(subject string) policy.LimitConfig {
	return policy.LimitConfig{
		Algorithm: "token_bucket", Limit: algorithm.Limit{Count: 5, Period: time.Minute, Burst: 5}, Subject: subject,
	}
}

func mustRules(t testing.TB, rules ...policy.RuleConfig) *policy.Rules {
	t.Helper()
	r, err := policy.New(policy.Config{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ruleFor returns a rule for each pattern, named after its place.
func ruleFor(patterns ...string) []policy.RuleConfig {
	var rules []policy.RuleConfig
	for i, p := range patterns {
		rules = append(rules, policy.RuleConfig{Name: fmt.Sprint(i), Match: p, Limits: []policy.LimitConfig{perMinute("ip")}})
	}
	return rules
}

func matched(rules *policy.Rules, r *http.Request) string {
	var list []string
	for _, rule := range rules.Match(r) {
		list = append(list, rule.Match)
	}
	return strings.Join(list, " + ")
}

func TestMatch(t *testing.T) {
	rules := mustRules(t, ruleFor(
		"POST /login", "/login", "/api/", "GET /api/users/{id}", "/api/users/{id}", "GET /api/users/me", "/files/{path...}", "/exact/{$}",
		"/tree/", "admin.example/", "admin.example/login", "/enc/a%2Fb", "HEAD /head", "GET /head", "/items/{id}/tags/{tag}",
	)...)
	for _, tt := range []struct{ method, target, want string }{
		{"POST", "/login", "POST /login"},
		{"GET", "/login", "/login"},
		{"GET", "/login/", ""},
		{"GET", "/Login", ""},
		{"GET", "/", ""},
		{"GET", "/api", ""},
		{"GET", "/api/", "/api/"},
		{"GET", "/api/x/y", "/api/"},
		{"GET", "/api/users/7", "GET /api/users/{id}"},
		{"HEAD", "/api/users/7", "GET /api/users/{id}"},
		{"PUT", "/api/users/7", "/api/users/{id}"},
		{"PUT", "/api/users/me", "/api/users/{id}"},
		{"HEAD", "/api/users/me", "GET /api/users/me"},
		{"PUT", "/api/users/7/x", "/api/"},
		{"PUT", "/api/users/", "/api/"},
		{"GET", "/files/a/b/c", "/files/{path...}"},
		{"GET", "/files/", "/files/{path...}"},
		{"GET", "/exact/", "/exact/{$}"},
		{"GET", "/exact/x", ""},
		{"GET", "/exact", ""},
		{"GET", "/tree", ""},
		{"GET", "/tree/", "/tree/"},
		{"GET", "http://admin.example/x", "admin.example/"},
		{"GET", "http://admin.example:8080/x", "admin.example/"},
		{"GET", "http://ADMIN.example./x", "admin.example/"},
		{"GET", "http://admin.example/login", "admin.example/login"},
		{"GET", "http://other.example/login", "/login"},
		{"GET", "/enc/a%2Fb", "/enc/a%2Fb"},
		{"GET", "/enc/a/b", ""},
		{"HEAD", "/head", "HEAD /head"},
		{"GET", "/head", "GET /head"},
		{"POST", "/head", ""},
		{"", "/head", "GET /head"},
		{"GET", "/items/1/tags/2", "/items/{id}/tags/{tag}"},
		{"GET", "/items//tags/2", ""},
	} {
		r := httptest.NewRequest("GET", tt.target, nil)
		r.Method = tt.method
		if got := matched(rules, r); got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.method, tt.target, got, tt.want)
		}
	}
}

// With a mux that had /tree/ and /, /tree would be redirected; here the rule that holds for it is /.
func TestTrailingSlashRedirectIsNoMatch(t *testing.T) {
	rules := mustRules(t, ruleFor("/tree/", "/")...)
	if got := matched(rules, httptest.NewRequest("GET", "/tree", nil)); got != "/" {
		t.Errorf("got %q, want /", got)
	}
}

func TestCase_M1_AliasesOfAPathShareARule(t *testing.T) {
	rules := mustRules(t, policy.RuleConfig{Name: "ab", Match: "/a/b", Limits: []policy.LimitConfig{perMinute("ip")}})
	want := ""
	for _, alias := range []string{"/a/b", "/a//b", "/a/./b", "/a/%62", "/a/b?x=1", "//a/b", "/x/../a/b", "/%61/b", "/../a/b"} {
		u, err := url.ParseRequestURI(alias)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = u
		before := u.String()
		m := rules.Match(r)
		if len(m) != 1 {
			t.Errorf("%s: no rule", alias)
			continue
		}
		key := fmt.Sprint(m[0].Asks(r, 1)[0].Key)
		if want == "" {
			want = key
		}
		if key != want {
			t.Errorf("%s: key %s, want %s", alias, key, want)
		}
		if r.URL != u || u.String() != before || r.Pattern != "" {
			t.Errorf("%s: the caller's request was changed", alias)
		}
	}
}

func TestCase_M3_ScopeIsTheRule(t *testing.T) {
	perRule, perID := perMinute("ip"), perMinute("path:id")
	perRule.Name, perID.Name = "rule", "id"
	rules := mustRules(t, policy.RuleConfig{Name: "users", Match: "/users/{id}", Limits: []policy.LimitConfig{perRule, perID}})
	keys := func(target string) []string {
		r := httptest.NewRequest("GET", target, nil)
		r.SetPathValue("id", "what the app's own mux says")
		var list []string
		for _, a := range rules.Match(r)[0].Asks(r, 3) {
			if a.N != 3 {
				t.Errorf("N is %d, want 3", a.N)
			}
			list = append(list, a.Key.Rule+" "+a.Key.Subject)
		}
		return list
	}
	for target, want := range map[string][]string{
		"/users/1":    {"users/rule 192.0.2.1", "users/id path:1"},
		"/users/2":    {"users/rule 192.0.2.1", "users/id path:2"},
		"/users/%32":  {"users/rule 192.0.2.1", "users/id path:2"},
		"//users/./2": {"users/rule 192.0.2.1", "users/id path:2"},
	} {
		if target == "//users/./2" {
			target = "http://x" + target
		}
		if got := keys(target); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

func TestPathSubjectOfMultiWildcard(t *testing.T) {
	rules := mustRules(t, policy.RuleConfig{Name: "f", Match: "/f/{dir}/{rest...}", Limits: []policy.LimitConfig{perMinute("path:rest"), perMinute("path:dir")}})
	for target, want := range map[string][2]string{
		"/f/a/b/c":                             {"path:b/c", "path:a"},
		"/f/a/":                                {"192.0.2.1", "path:a"},
		"/f/a/" + strings.Repeat("0123", 1000): {"path#:", "path:a"},
	} {
		r := httptest.NewRequest("GET", target, nil)
		asks := rules.Match(r)[0].Asks(r, 1)
		if got := asks[0].Key.Subject; !strings.HasPrefix(got, want[0]) || len(got) > 70 {
			t.Errorf("%.20s: got %q, want %q", target, got, want[0])
		}
		if got := asks[1].Key.Subject; got != want[1] {
			t.Errorf("%.20s: got %q, want %q", target, got, want[1])
		}
	}
}

func TestAlwaysHoldsInAddition(t *testing.T) {
	rules := mustRules(t, ruleFor("always", "/a", "always")...)
	for target, want := range map[string]string{"/a": "/a + always + always", "/b": "always + always"} {
		if got := matched(rules, httptest.NewRequest("GET", target, nil)); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
	if got := mustRules(t).Match(httptest.NewRequest("GET", "/", nil)); got != nil {
		t.Errorf("no rules: got %v, want nil", got)
	}
}

func TestModeOffMatchesNothing(t *testing.T) {
	rules, err := policy.New(policy.Config{Mode: policy.ModeOff, Rules: ruleFor("always", "/a")})
	if err != nil {
		t.Fatal(err)
	}
	if got := rules.Match(httptest.NewRequest("GET", "/a", nil)); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	if len(rules.All()) != 2 {
		t.Error("the rules are gone")
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	rules := mustRules(t, ruleFor("/a/{b}/c", "/a/", "h.example/x", "always")...)
	r := httptest.NewRequest("GET", "http://other.example/a/1/c", nil)
	if n := testing.AllocsPerRun(100, func() { rules.Match(r) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// The mux of net/http is the oracle: on a cleaned path, and but for its redirects, it finds the same pattern.
func FuzzMatch(f *testing.F) {
	f.Add("/a/{x}\nGET /a/b\n/a/\n/", "HEAD", "h", "/a/b")
	f.Add("h/{$}\n/{a}/{b...}\nPOST h/{a}/b", "POST", "h", "/%61//../x/b")
	f.Add("/a%2Fb/{x}\n/{y}/c", "", "", "/%2F")
	f.Add("/{a}/b/{c}/d\n/x/{b}/y/{$}", "GET", "h:1", "/x/b/y/")
	f.Fuzz(func(t *testing.T, patterns, method, host, target string) {
		if strings.Count(patterns, "\n") > 20 {
			return
		}
		lines := strings.Split(patterns, "\n")
		if slices.Contains(lines, "always") {
			return
		}
		r := &http.Request{Method: method, Host: host, URL: &url.URL{Path: target}}
		if u, err := url.ParseRequestURI(target); err == nil {
			r.URL = u
		}
		rules, err := policy.New(policy.Config{Rules: ruleFor(lines...)})
		if err != nil {
			return
		}
		got := matched(rules, r)
		for _, rule := range rules.Match(r) {
			rule.Asks(r, 1)
		}
		if method == "CONNECT" || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz:0123456789") != "" {
			return // net/http does not clean the path of the one, and compares case, brackets and dots of the other
		}
		mux := http.NewServeMux()
		for _, p := range lines {
			host, _, _ := strings.Cut(p[strings.LastIndexAny(p, " \t")+1:], "/")
			if strings.ToLower(host) != host {
				return
			}
			mux.Handle(p, marker(p))
		}
		clean := path.Clean("/" + r.URL.EscapedPath())
		if strings.HasSuffix(r.URL.EscapedPath(), "/") && clean != "/" {
			clean += "/"
		}
		u, err := url.ParseRequestURI(clean)
		if err != nil || u.EscapedPath() != clean {
			return
		}
		if method == "" {
			method = "GET"
		}
		h, want := mux.Handler(&http.Request{Method: method, Host: host, URL: u})
		if _, ok := h.(marker); !ok {
			if want != "" {
				return // a redirect
			}
		}
		if got != want {
			t.Errorf("%q, %s %s %s: got %q, net/http finds %q", lines, method, host, clean, got, want)
		}
	})
}

type marker string

func (marker) ServeHTTP(http.ResponseWriter, *http.Request) {}

func BenchmarkMatch(b *testing.B) {
	rules := mustRules(b, ruleFor("POST /login", "/api/", "GET /api/users/{id}", "/files/{path...}", "always")...)
	r := httptest.NewRequest("GET", "/api/users/42", nil)
	b.ReportAllocs()
	for b.Loop() {
		for _, rule := range rules.Match(r) {
			rule.Asks(r, 1)
		}
	}
}
