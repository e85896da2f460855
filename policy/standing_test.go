package policy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/policy"
)

func TestStanding(t *testing.T) {
	t.Setenv("SLUICE_TEST_KEY", " env-secret\n")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("file-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := policy.New(policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")},
		Rules: []policy.RuleConfig{{
			Name: "a", Match: "/a/{id}", Limits: []policy.LimitConfig{perMinute("ip")},
			Exempt: []string{
				"10.0.0.0/8", "192.0.2.7", "2001:db8:1::/48", "::ffff:198.51.100.0/120", "10.1.2.3/16",
				"header:x-key=secret", "header:X-Key=env:SLUICE_TEST_KEY", "cookie:sid=file:" + file, "header:Authorization=Bearer abc", "path:id=free", "query:q=a=b",
			},
			Deny: []string{"10.66.0.0/16", "header:X-Key=bad", "2001:db8:1:bad::/64"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, target, peer string
		headers            []string
		want               policy.Standing
	}{
		{"nobody", "/a/1", "198.18.0.1:1", nil, policy.Counted},
		{"network", "/a/1", "10.1.2.3:1", nil, policy.Exempt},
		{"mapped peer", "/a/1", "[::ffff:10.1.2.3]:1", nil, policy.Exempt},
		{"address", "/a/1", "192.0.2.7:1", nil, policy.Exempt},
		{"next address", "/a/1", "192.0.2.8:1", nil, policy.Counted},
		{"IPv6 network", "/a/1", "[2001:db8:1:5::1%eth0]:1", nil, policy.Exempt},
		{"IPv6 next", "/a/1", "[2001:db8:2::1]:1", nil, policy.Counted},
		{"mapped network", "/a/1", "198.51.100.200:1", nil, policy.Exempt},
		{"no address", "/a/1", "@", nil, policy.Counted},
		{"deny goes before exempt", "/a/1", "10.66.0.1:1", nil, policy.Denied},
		{"IPv6 denied", "/a/1", "[2001:db8:1:bad::1]:1", nil, policy.Denied},
		{"behind a proxy", "/a/1", "10.9.0.1:1", []string{"X-Forwarded-For", "198.18.0.1"}, policy.Counted},
		{"denied behind a proxy", "/a/1", "10.9.0.1:1", []string{"X-Forwarded-For", "10.66.0.1"}, policy.Denied},
		{"spoofed", "/a/1", "198.18.0.1:1", []string{"X-Forwarded-For", "10.1.2.3"}, policy.Counted},
		{"header", "/a/1", "198.18.0.1:1", []string{"X-Key", "secret"}, policy.Exempt},
		{"header by variable", "/a/1", "198.18.0.1:1", []string{"X-Key", "env-secret"}, policy.Exempt},
		{"the variable's name", "/a/1", "198.18.0.1:1", []string{"X-Key", "env:SLUICE_TEST_KEY"}, policy.Counted},
		{"header denied", "/a/1", "10.1.2.3:1", []string{"X-Key", "bad"}, policy.Denied},
		{"header of another value", "/a/1", "198.18.0.1:1", []string{"X-Key", "Secret"}, policy.Counted},
		{"cookie by file", "/a/1", "198.18.0.1:1", []string{"Cookie", "sid=file-secret"}, policy.Exempt},
		{"cookie of another value", "/a/1", "198.18.0.1:1", []string{"Cookie", "sid=secret"}, policy.Counted},
		{"credentials", "/a/1", "198.18.0.1:1", []string{"Authorization", "bearer  abc"}, policy.Exempt},
		{"wildcard", "/a/free", "198.18.0.1:1", nil, policy.Exempt},
		{"wildcard, decoded", "/a/%66ree", "198.18.0.1:1", nil, policy.Exempt},
		{"query", "/a/1?q=a%3Db", "198.18.0.1:1", nil, policy.Exempt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", tt.target, nil)
			r.RemoteAddr = tt.peer
			for i := 0; i < len(tt.headers); i += 2 {
				r.Header.Add(tt.headers[i], tt.headers[i+1])
			}
			if got := rules.Match(r)[0].Standing(r); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	for what, text := range map[string]string{"the rules": fmt.Sprintf("%+v", rules.All()[0]), "the configuration": fmt.Sprintf("%+v", rules.Config())} {
		if strings.Contains(text, "env-secret") || strings.Contains(text, "file-secret") {
			t.Errorf("%s print a secret: %s", what, text)
		}
	}
}

// Check leaves variables and files alone; New does not, and finds them wanting.
func TestCheckReadsNoSecrets(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big")
	lines := filepath.Join(t.TempDir(), "lines")
	for file, text := range map[string]string{big: strings.Repeat("x", 64<<10+1), lines: "a\nb"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	limit := perMinute("header:X-Key")
	limit.Overrides = []policy.OverrideConfig{{Subject: "env:SLUICE_TEST_NONE", Limit: limit.Limit}, {Subject: "file:" + big, Limit: limit.Limit}}
	c := policy.Config{Rules: []policy.RuleConfig{{Name: "a", Match: "/", Exempt: []string{"header:X-Key=file:" + lines}, Limits: []policy.LimitConfig{limit}}}}
	if err := c.Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
	_, err := policy.New(c)
	if err == nil {
		t.Fatal("New took secrets that cannot be read")
	}
	for _, want := range []string{
		"policy: rules[0].exempt[0]: file " + lines + " has several lines: want one line with the value\n",
		"policy: rules[0].limits[0].overrides[0].subject: environment variable SLUICE_TEST_NONE is not set or empty: want one line with the value\n",
		"policy: rules[0].limits[0].overrides[1].subject: file " + big + " is larger than 64 KiB: want one line with the value\n",
	} {
		if !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	c.Rules[0].Name = ""
	if err := c.Check(); err == nil || err.Error() != "policy: rules[0].name: missing: want a name" {
		t.Errorf("Check: %v, want the fault of the name alone", err)
	}
}

// A list of thousands is looked up by lengths of networks, not one by one.
func BenchmarkStanding(b *testing.B) {
	var deny []string
	for i := range 10_000 {
		deny = append(deny, fmt.Sprintf("198.%d.%d.0/24", 18+i>>8&1, i&255), fmt.Sprintf("203.0.%d.%d", i>>8&255, i&255))
	}
	rule := mustRules(b, policy.RuleConfig{Name: "a", Match: "/", Deny: deny, Limits: []policy.LimitConfig{perMinute("ip")}}).All()[0]
	r := &http.Request{RemoteAddr: "192.0.2.1:1"}
	b.ReportAllocs()
	for b.Loop() {
		if rule.Standing(r) != policy.Counted {
			b.Fatal("denied")
		}
	}
}
