package rulefile_test

import (
	"errors"
	"flag"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
)

var update = flag.Bool("update", false, "rewrite the expected errors")

func TestParse(t *testing.T) {
	got, err := rulefile.Load("testdata/good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limit := func(count int64, period time.Duration, burst int64) algorithm.Limit {
		return algorithm.Limit{Count: count, Period: period, Burst: burst}
	}
	newYear := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range got.Rules {
		for j := range got.Rules[i].Limits {
			for k := range got.Rules[i].Limits[j].Overrides {
				o := &got.Rules[i].Limits[j].Overrides[k]
				o.Until = o.Until.UTC()
			}
		}
	}
	want := policy.Config{
		Store:    policy.StoreConfig{Redis: "env:REDIS_URL", Timeout: 50 * time.Millisecond, Prefix: "shop"},
		Failover: policy.FailoverConfig{TripAfter: 3, OpenFor: 2 * time.Second, Group: "shop"},
		TrustedProxies: []netip.Prefix{
			netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("192.0.2.7/32"),
		},
		IPv6Prefix: 56, Headers: policy.HeadersX, Mode: policy.ModeEnforce,
		Rules: []policy.RuleConfig{
			{
				Name: "login", Match: "POST /login", OnOutage: policy.Deny,
				Denial: policy.Denial{Status: 429, Type: "text/plain", Body: "later, please"},
				Exempt: []string{"10.1.0.0/16", "header:X-Probe=env:SLUICE_TEST_PROBE"},
				Deny:   []string{"2001:db8:bad::/48", "cookie:sid=file:testdata/none"},
				Limits: []policy.LimitConfig{
					{Algorithm: "token_bucket", Limit: limit(5, time.Minute, 10), Subject: "ip"},
					{Algorithm: "fixed_window", Limit: limit(1000, time.Hour, 0), Subject: "global"},
				},
			},
			{
				Name: "user", Match: "/users/{id}",
				Cost: policy.CostConfig{Header: "X-Cost", Default: 2, Min: 1, Max: 100}, Settle: "response:X-Actual-Cost",
				Limits: []policy.LimitConfig{
					{Algorithm: "leaky", Limit: limit(2, time.Second, 2), Subject: "path:id", Overrides: []policy.OverrideConfig{ // Burst defaults to Count
						{Subject: "7", Limit: limit(20, time.Second, 20)},
						{Subject: "8", Limit: limit(20, time.Second, 5), Until: newYear},
					}},
					{Name: "next", Algorithm: "leaky_bucket", Limit: limit(10, time.Second, 0), MaxDelay: 1500 * time.Millisecond, Subject: "ip", Shadow: true},
					{Name: "key", Algorithm: "sliding_window", Limit: limit(100, 10*time.Second, 0), Subject: "header:X-API-Key", Overrides: []policy.OverrideConfig{
						{Subject: "env:SLUICE_TEST_KEY", Limit: limit(5000, 10*time.Second, 0), Until: newYear},
					}},
				},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	data, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rulefile.Parse("bad.yaml", data)
	if err == nil || !reflect.DeepEqual(c, policy.Config{}) {
		t.Fatalf("got %+v, %v: want the zero Config and an error", c, err)
	}
	const golden = "testdata/bad.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, readErr := os.ReadFile(golden)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if got := err.Error() + "\n"; got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

const rule = "rules: [{name: a, match: /, limits: [{algorithm: token_bucket, limit: 5/s, subject: ip}]}]\n"

func TestErrors(t *testing.T) {
	for name, tt := range map[string]struct{ file, want string }{
		"empty":             {"", "f:1:1: empty: want at least a rule under rules"},
		"comment":           {"# nothing\n", "f:1:1: empty: want at least a rule under rules"},
		"null":              {"---\n~\n", "f:1:1: empty: want at least a rule under rules"},
		"list":              {"- name: a\n", "f:1:1: want fields, have a list"},
		"text":              {"rules", `f:1:1: want fields, have the text "rules"`},
		"no rules":          {"mode: off\n", "f:1:1: rules: missing: want at least one rule"},
		"empty rules":       {"mode: off\nrules: []\n", "f:2:8: rules: empty: want at least one rule"},
		"null rules":        {"rules:\n", "f:1:7: rules: no value: want a list"},
		"two documents":     {rule + "---\n" + rule, "f:2:1: a second document: want one in a file"},
		"broken second":     {rule + "---\na: b: c\n", "f:3:5: not YAML: mapping values are not allowed in this context"},
		"not YAML":          {"rules:\n  - {name: a\n", "f:3:1: not YAML: while parsing a flow mapping: did not find expected ',' or '}'"},
		"tab":               {"rules:\n\t- name: a\n", "f:2:1: not YAML: while scanning for the next token: found character that cannot start any token"},
		"no such anchor":    {"rules: *a\n", "f:1:8: not YAML: unknown anchor 'a' referenced"},
		"not UTF-8":         {"rules:\n  - \xff\n", "f:2:5: byte 0xff is not UTF-8: want UTF-8 text"},
		"UTF-16":            {"\xff\xfea\x00", "f:1:1: byte 0xff is not UTF-8: want UTF-8 text"},
		"NUL":               {"a: é\x00\n", "f:1:5: control character U+0000: want UTF-8 text"},
		"too large":         {strings.Repeat("#", 10<<20), "f:1:1: want at most 1048576 bytes"},
		"alias":             {"store: &a {prefix: b}\nfailover: *a\n" + rule, "f:2:11: failover: alias *a: not supported: write the value out"},
		"merge":             {"store: {<<: {prefix: b}}\n" + rule, "f:1:9: store: merge key <<: not supported: write the fields out"},
		"alias as key":      {"mode: &a enforce\n*a : x\n" + rule, "f:2:1: alias *a: not supported: write it out"},
		"list as key":       {"[a]: x\n" + rule, "f:1:1: want the name of a field, have a list"},
		"number as key":     {"5: x\n" + rule, "f:1:1: want the name of a field, have the number 5"},
		"field twice":       {"mode: off\nmode: off\n" + rule, "f:2:1: mode: set twice, first on line 1"},
		"unknown field":     {"store: {url: x}\n" + rule, "f:1:9: store.url: unknown field: want one of redis, timeout, prefix"},
		"unknown, odd name": {"\"a\\nb.c\": x\n" + rule, `f:1:1: "a\nb.c": unknown field: want one of store,`},
		"field elsewhere":   {"store: {cost: x}\n" + rule, "f:1:9: store.cost: unknown field: want one of redis, timeout, prefix"},
		"number for text":   {"store: {prefix: 1.10}\n" + rule, "f:1:17: store.prefix: want text, have the number 1.10: quote it"},
		"bool for text":     {"mode: true\n" + rule, "f:1:7: mode: want text, have true: quote it"},
		"date for text":     {"mode: 2027-01-01\n" + rule, `f:1:7: mode: want text, have "2027-01-01" of type !!timestamp: quote it`},
		"fields for text":   {"mode: {a: b}\n" + rule, "f:1:7: mode: want text, have fields"},
		"empty text":        {"store: {redis: \"\"}\n" + rule, "f:1:16: store.redis: empty: want text"},
		"null text":         {"mode:\n" + rule, "f:1:6: mode: no value: want text"},
		"number for time":   {"store: {timeout: 50}\n" + rule, `f:1:18: store.timeout: want a duration with its unit, such as "50ms", have the number 50`},
		"zero for time":     {"store: {timeout: 0s}\n" + rule, "f:1:18: store.timeout: 0s: want more than 0"},
		"bad time":          {"store: {timeout: 50 ms}\n" + rule, `f:1:18: store.timeout: "50 ms": want a duration with its unit`},
		"long time":         {"store: {timeout: 2m}\n" + rule, "f:1:18: store.timeout: 2m0s: want 1ms to 1m"},
		"fraction":          {"ipv6_prefix: 6.5\n" + rule, "f:1:14: ipv6_prefix: want a whole number in decimal digits, have the number 6.5"},
		"hexadecimal":       {"ipv6_prefix: 0x40\n" + rule, "f:1:14: ipv6_prefix: want a whole number in decimal digits, have the number 0x40"},
		"octal":             {"ipv6_prefix: 064\n" + rule, "f:1:14: ipv6_prefix: want a whole number in decimal digits, have the number 064"},
		"text for number":   {"ipv6_prefix: \"64\"\n" + rule, `f:1:14: ipv6_prefix: want a whole number in decimal digits, have the text "64"`},
		"not a number":      {"ipv6_prefix: .nan\n" + rule, "f:1:14: ipv6_prefix: want a whole number in decimal digits, have the number .nan"},
		"tagged number":     {"ipv6_prefix: !!int x\n" + rule, "f:1:14: ipv6_prefix: want a whole number in decimal digits, have the number x"},
		"zero":              {"ipv6_prefix: 0\n" + rule, "f:1:14: ipv6_prefix: 0: want at least 1"},
		"one network":       {"trusted_proxies: 10.0.0.0/8\n" + rule, `f:1:18: trusted_proxies: want a list, have the text "10.0.0.0/8"`},
		"address with zone": {"trusted_proxies: [\"fe80::1%eth0\"]\n" + rule, `f:1:19: trusted_proxies[0]: "fe80::1%eth0": want a network`},
		"missing fields":    {"rules: [{name: a, match: /, limits: [{}]}]\n", "f:1:38: rules[0].limits[0].limit: missing: want a limit such as \"100/10s\"\nf:1:38: rules[0].limits[0].algorithm: missing: want one of token_bucket, fixed_window, sliding_window, leaky_bucket\nf:1:38: rules[0].limits[0].subject: missing: want ip"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rulefile.Parse("f", []byte(tt.file))
			es, ok := errors.AsType[rulefile.Errors](err)
			if !ok {
				t.Fatalf("got %T %v, want Errors", err, err)
			}
			if !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if want := strings.Count(tt.want, "\n") + 1; len(es) != want {
				t.Errorf("%d faults, want %d:\n%v", len(es), want, err)
			}
			if e, ok := errors.AsType[rulefile.Error](err); !ok || e.File != "f" || e.Line < 1 || e.Column < 1 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestManyFaultsAreBounded(t *testing.T) {
	_, err := rulefile.Parse("f", []byte("rules:\n"+strings.Repeat("- {name: a, match: /}\n", 1000)))
	es, ok := errors.AsType[rulefile.Errors](err)
	if !ok || len(es) != 101 || es[100].Msg != "and 2898 more faults" {
		t.Fatalf("got %d faults, the last: %v", len(es), es[len(es)-1])
	}
}

func TestHostileFilesEndSoon(t *testing.T) {
	for _, unit := range []string{"[", "{a: ", "- ", "? ", "&a ", "a: &a b\n", "a:\n", "!", "\"", "|\n", "rules: ", "x,", "%", "<<: ", "*a,"} {
		start := time.Now()
		if _, err := rulefile.Parse("f", []byte(strings.Repeat(unit, rulefile.MaxSize/8/len(unit)))); err == nil {
			t.Errorf("%q: no error", unit)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%q: took %v", unit, took)
		}
	}
}

func TestLoad(t *testing.T) {
	if _, err := rulefile.Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "rulefile: ") {
		t.Errorf("no file: got %v", err)
	}
	if _, err := rulefile.Load(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "rulefile: ") {
		t.Errorf("a folder: got %v", err)
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, []byte(rule+strings.Repeat("#", rulefile.MaxSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := rulefile.Load(large); err == nil || !strings.HasSuffix(err.Error(), "large.yaml:1:1: want at most 1048576 bytes") {
		t.Errorf("a large file: got %v", err)
	}
}

func TestByteOrderMarkIsAllowed(t *testing.T) {
	if _, err := rulefile.Parse("f", []byte("\ufeff"+rule)); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/good.yaml", "testdata/bad.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(rule))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := rulefile.Parse("f", data)
		if err == nil {
			if err := c.Check(); err != nil {
				t.Fatalf("Parse took what Check refuses: %v", err)
			}
			return
		}
		es, ok := errors.AsType[rulefile.Errors](err)
		if !ok || len(es) == 0 {
			t.Fatalf("got %T %v, want Errors", err, err)
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(es) {
			t.Errorf("%d lines for %d faults: %q", lines, len(es), err)
		}
		for _, e := range es {
			if e.Line < 1 || e.Column < 1 || e.Line > len(data)+2 {
				t.Errorf("no place: %+v", e)
			}
		}
	})
}
