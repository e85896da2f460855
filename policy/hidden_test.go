package policy_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/policy"
)

func hides(c policy.Config) string {
	var list []string
	for _, h := range c.Hidden() {
		list = append(list, h.Rule+" hides "+strings.Join(h.Hides, ", "))
	}
	return strings.Join(list, "; ")
}

func TestHidden(t *testing.T) {
	for _, tt := range []struct {
		patterns []string
		want     string
	}{
		{nil, ""},
		{[]string{"/"}, ""},
		{[]string{"/", "POST /login"}, "1 hides 0"},
		{[]string{"POST /login", "/"}, "0 hides 1"},
		{[]string{"/a", "/b"}, ""},
		{[]string{"/a", "always", "/"}, "0 hides 2"},
		{[]string{"/a", "GET /a", "HEAD /a"}, "1 hides 0; 2 hides 0, 1"},
		{[]string{"GET /a", "POST /a"}, ""},
		{[]string{"/api/", "/api/users/{id}", "GET /api/users/me", "/"}, "0 hides 3; 1 hides 0, 3; 2 hides 0, 1, 3"},
		{[]string{"/files/{path...}", "/files/{$}", "/files/a"}, "1 hides 0; 2 hides 0"},
		{[]string{"/{a}", "/{$}"}, ""},
		{[]string{"/files/", "/files"}, ""},
		{[]string{"/{a}/b", "/"}, "0 hides 1"},
		{[]string{"h.example/", "/a", "/"}, "0 hides 1, 2; 1 hides 2"}, // a host goes before any path
		{[]string{"h.example/", "i.example/a"}, ""},
		{[]string{"H.example/a", "h.example/"}, "0 hides 1"},
		{[]string{"/a%2Fb", "/{x}", "/ä"}, "0 hides 1; 2 hides 1"},
		{[]string{"/a", "bad", "/"}, "0 hides 2"},
	} {
		if got := hides(policy.Config{Rules: ruleFor(tt.patterns...)}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.patterns, got, tt.want)
		}
	}
}

// Whatever request two rules match alone, one hides the other, and the request goes to that one.
func TestHiddenIsWhatMatchingDoes(t *testing.T) {
	part := rapid.SampledFrom([]string{"/a", "/b", "/{x}", "/a/", "/{x...}", "/{$}", "/", "/a/b", "/a/{y}", "/{x}/{y}", "/{x}/b"})
	pattern := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "GET ", "HEAD ", "POST "}).Draw(t, "method") + rapid.SampledFrom([]string{"", "", "h.example"}).Draw(t, "host") + part.Draw(t, "path")
	})
	rapid.Check(t, func(t *rapid.T) {
		one, two := pattern.Draw(t, "one"), pattern.Draw(t, "two")
		both, err := policy.New(policy.Config{Rules: ruleFor(one, two)})
		if err != nil {
			return // in conflict
		}
		alone := [2]*policy.Rules{only(t, one), only(t, two)}
		said := hides(both.Config())
		won := map[string]bool{}
		for _, method := range []string{"GET", "HEAD", "POST"} {
			for _, host := range []string{"h.example", "other.example"} {
				for _, path := range []string{"/", "/a", "/b", "/a/", "/a/b", "/a/c", "/c", "/c/b", "/c/d", "/a/b/c", "/c/", "/b/"} {
					r := &http.Request{Method: method, Host: host, URL: &url.URL{Path: path}}
					if alone[0].Match(r) == nil || alone[1].Match(r) == nil {
						continue
					}
					winner := both.Match(r)[0].Name
					won[winner] = true
					if want := fmt.Sprintf("%s hides %d", winner, '1'-winner[0]); said != want {
						t.Fatalf("%q and %q: said %q; %s %s%s goes to %s", one, two, said, method, host, path, winner)
					}
				}
			}
		}
		if len(won) == 0 && said != "" {
			t.Fatalf("%q and %q: said %q, and no request matches both", one, two, said)
		}
	})
}

func only(t *rapid.T, pattern string) *policy.Rules {
	rules, err := policy.New(policy.Config{Rules: ruleFor(pattern)})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}
