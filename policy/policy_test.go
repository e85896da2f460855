package policy_test

import (
	"errors"
	"math"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

func TestEveryFaultNamesFieldValueAndBound(t *testing.T) {
	limit := func(name string, count int64, period time.Duration, burst int64, subject string) policy.LimitConfig {
		return policy.LimitConfig{Algorithm: name, Limit: algorithm.Limit{Count: count, Period: period, Burst: burst}, Subject: subject}
	}
	rule := func(match string, limits ...policy.LimitConfig) policy.Config {
		return policy.Config{Rules: []policy.RuleConfig{{Name: "a", Match: match, Limits: limits}}}
	}
	ok := perMinute("ip")
	rules := func(match ...string) policy.Config { return policy.Config{Rules: ruleFor(match...)} }
	named := func(names ...string) policy.Config {
		c := policy.Config{}
		for i, n := range names {
			c.Rules = append(c.Rules, policy.RuleConfig{Name: n, Match: "/" + string(rune('a'+i)), Limits: []policy.LimitConfig{ok}})
		}
		return c
	}
	denial := func(d policy.Denial) policy.Config {
		c := rule("/", ok)
		c.Rules[0].Denial = d
		return c
	}
	with := func(edit func(*policy.RuleConfig)) policy.Config {
		c := rule("/", ok)
		edit(&c.Rules[0])
		return c
	}
	limited := func(edit func(*policy.LimitConfig)) policy.Config {
		return with(func(r *policy.RuleConfig) { edit(&r.Limits[0]) })
	}
	const at = "policy: rules[0].limits[0]."
	for name, tt := range map[string]struct {
		config policy.Config
		want   []string // a line each: how it begins
	}{
		"no name":              {named(""), []string{"policy: rules[0].name: missing: want a name"}},
		"slash in name":        {named("a/b"), []string{`policy: rules[0].name: "a/b": want letters, digits and . _ : @ - alone`}},
		"name not ASCII":       {named("ä"), []string{`policy: rules[0].name: "ä": want letters`}},
		"long name":            {named(strings.Repeat("n", 129)), []string{`policy: rules[0].name: "nnn`}},
		"equal names":          {named("a", "b", "a"), []string{`policy: rules[2].name: "a" is also the name of rules[0]: want another`}},
		"equal limit names":    {rule("/", ok, ok), []string{`policy: rules[0].limits[1].name: "token_bucket-ip" is also the name of limits[0]`}},
		"default name unfit":   {rule("/", perMinute("query:a b")), []string{at + `name: missing, and the default "token_bucket-query:a b" is none`}},
		"no match":             {rules(""), []string{`policy: rules[0].match: missing: want a pattern such as "POST /login", or always`}},
		"no slash":             {rules("login"), []string{`policy: rules[0].match: pattern "login": at offset 0: host/path missing /`}},
		"Always":               {rules("Always"), []string{`policy: rules[0].match: pattern "Always": at offset 0`}},
		"bad wildcard":         {rules("/a/{b"), []string{`policy: rules[0].match: pattern "/a/{b": at offset 3: bad wildcard segment`}},
		"wildcard twice":       {rules("/{a}/{a}"), []string{`policy: rules[0].match: pattern "/{a}/{a}": at offset 5: duplicate wildcard name`}},
		"bad method":           {rules("G(T /a"), []string{`policy: rules[0].match: pattern "G(T /a": at offset 0: invalid method "G(T"`}},
		"lower-case method":    {rules("post /a"), []string{`policy: rules[0].match: pattern "post /a": method "post" never arrives, methods are upper case: want "POST"`}},
		"host with port":       {rules("h.example:80/a"), []string{`policy: rules[0].match: pattern "h.example:80/a": host "h.example:80" never matches`}},
		"host not ASCII":       {rules("bücher.example/a"), []string{`policy: rules[0].match: pattern "bücher.example/a": host "bücher.example" never matches, hosts arrive in ASCII`}},
		"path not clean":       {rules("/a//b"), []string{`policy: rules[0].match: pattern "/a//b": path "/a//b" never matches, paths are cleaned first: want "/a/b"`}},
		"equal patterns":       {rules("/a", "GET /a", "/a"), []string{`policy: rules[2].match: pattern "/a" conflicts with rules[0].match "/a": /a matches the same requests as /a`}},
		"equal hosts":          {rules("h.example/a", "H.example/a"), []string{`policy: rules[1].match: pattern "H.example/a" conflicts with rules[0].match "h.example/a"`}},
		"overlapping patterns": {rules("/{x}/b", "/a/{y}"), []string{`policy: rules[1].match: pattern "/a/{y}" conflicts with rules[0].match "/{x}/b"`}},
		"no limits":            {rule("/"), []string{"policy: rules[0].limits: missing: want at least one limit"}},
		"on_outage": {policy.Config{Rules: []policy.RuleConfig{{Name: "a", Match: "/", OnOutage: "open", Limits: []policy.LimitConfig{ok}}}},
			[]string{`policy: rules[0].on_outage: "open": want one of local, allow, deny`}},
		"low status":          {denial(policy.Denial{Status: 399}), []string{"policy: rules[0].denial.status: 399: want 400 to 599"}},
		"high status":         {denial(policy.Denial{Status: 600}), []string{"policy: rules[0].denial.status: 600: want 400 to 599"}},
		"type without body":   {denial(policy.Denial{Type: "text/html"}), []string{`policy: rules[0].denial.body: missing: want the body that type "text/html" is of`}},
		"type no media type":  {denial(policy.Denial{Type: "html", Body: "x"}), []string{`policy: rules[0].denial.type: "html": want a media type`}},
		"type splits headers": {denial(policy.Denial{Type: "text/html; a\r\nX-A: b", Body: "x"}), []string{`policy: rules[0].denial.type: "text/html; a\r\nX-A: b": want`}},
		"no algorithm":        {rule("/", limit("", 1, time.Second, 1, "ip")), []string{at + "algorithm: missing: want one of token_bucket, fixed_window, sliding_window, leaky_bucket"}},
		"unknown algorithm":   {rule("/", limit("gcra", 1, time.Second, 1, "ip")), []string{at + `algorithm: "gcra": want one of token_bucket`}},
		"missing burst":       {rule("/", limit("token_bucket", 1, time.Second, 0, "ip")), []string{at + "burst: 0: want at least 1"}},
		"missing leaky burst": {rule("/", limit("leaky", 1, time.Second, 0, "ip")), []string{at + "burst: 0: want at least 1"}},
		"negative burst":      {rule("/", limit("fixed_window", 1, time.Second, -1, "ip")), []string{at + "burst: -1: want at least 0"}},
		"burst of a window":   {rule("/", limit("fixed_window", 1, time.Second, 2, "ip")), []string{at + "burst: Burst 2: want 0 or Count 1"}},
		"zero count":          {rule("/", limit("fixed_window", 0, time.Second, 0, "ip")), []string{at + "limit: Count 0: want at least 1"}},
		"negative count":      {rule("/", limit("sliding_window", -5, time.Second, 0, "ip")), []string{at + "limit: Count -5: want at least 1"}},
		"count and burst":     {rule("/", limit("token_bucket", 0, time.Second, -1, "ip")), []string{at + "burst: -1: want at least 1", at + "limit: Count 0: want at least 1"}},
		"period below 1 µs":   {rule("/", limit("token_bucket", 1, 999, 1, "ip")), []string{at + "limit: Period 999ns: want at least 1µs"}},
		"period no µs":        {rule("/", limit("leaky_bucket", 1, 1500, 1, "ip")), []string{at + "limit: Period 1.5µs: want a whole number of µs"}},
		"period too long":     {rule("/", limit("token_bucket", 1, math.MaxInt64, 1, "ip")), []string{at + "limit: Period"}},
		"count too large":     {rule("/", limit("fixed_window", math.MaxInt64, time.Second, 0, "ip")), []string{at + "limit: Count 9223372036854775807: want at most"}},
		"does not fit":        {rule("/", limit("token_bucket", 1, 300*24*time.Hour, 1e6, "ip")), []string{at + "burst: Burst 1000000"}},
		"no subject":          {rule("/", perMinute("")), []string{at + "subject: missing: want ip, global, header:NAME"}},
		"unknown subject":     {rule("/", perMinute("user")), []string{at + `subject: "user": want ip, global, header:NAME`}},
		"unknown kind":        {rule("/", perMinute("jwt:sub")), []string{at + `subject: "jwt:sub": want ip`}},
		"ip with a name":      {rule("/", perMinute("ip:24")), []string{at + `subject: "ip:24": want ip`}},
		"header without name": {rule("/", perMinute("header: ")), []string{at + `subject: "header: ": want a name after header:`}},
		"header of two words": {rule("/", perMinute("header:X Key")), []string{at + `subject: "header:X Key": "X Key" can't name a header`}},
		"path of no wildcard": {rule("/a/{id}/{x...}", perMinute("path:ID")), []string{at + `subject: "path:ID": "ID" is no wildcard of the rule's match: want one of id, x`}},
		"path without any":    {rule("/a", perMinute("path:id")), []string{at + `subject: "path:id": "id" is no wildcard of the rule's match: it has none`}},
		"path of {$}":         {rule("/a/{$}", perMinute("path:$")), []string{at + `subject: "path:$": "$" is no wildcard`}},
		"path of always":      {rule("always", perMinute("path:id")), []string{at + `subject: "path:id": match always has no wildcards`}},
		"timeout":             {policy.Config{Store: policy.StoreConfig{Timeout: -1}}, []string{"policy: store.timeout: -1ns: want 1ms to 1m"}},
		"prefix":              {policy.Config{Store: policy.StoreConfig{Prefix: "a{b"}}, []string{`policy: store.prefix: "a{b": want no brace`}},
		"redis":               {policy.Config{Store: policy.StoreConfig{Redis: "secret"}}, []string{"policy: store.redis: want env:NAME, file:PATH or a URL"}},
		"redis env":           {policy.Config{Store: policy.StoreConfig{Redis: "env:"}}, []string{`policy: store.redis: "env:" has no name`}},
		"redis file":          {policy.Config{Store: policy.StoreConfig{Redis: "file: "}}, []string{`policy: store.redis: "file:" has no path`}},
		"failover": {policy.Config{Failover: policy.FailoverConfig{TripAfter: -1, OpenFor: -1, Instances: -1}}, []string{
			"policy: failover.trip_after: -1: want at least 1", "policy: failover.open_for: -1ns: want at least 1ms", "policy: failover.instances: -1: want at least 1",
		}},
		"trusted":        {policy.Config{TrustedProxies: make([]netip.Prefix, 2)}, []string{"policy: trusted_proxies[0]: invalid Prefix", "policy: trusted_proxies[1]: invalid"}},
		"ipv6_prefix":    {policy.Config{IPv6Prefix: 129}, []string{"policy: ipv6_prefix: 129: want 1 to 128"}},
		"headers":        {policy.Config{Headers: "rfc"}, []string{`policy: headers: "rfc": want one of draft, x-ratelimit, off`}},
		"mode":           {policy.Config{Mode: "on"}, []string{`policy: mode: "on": want one of enforce, shadow, local, off`}},
		"cost header":    {with(func(r *policy.RuleConfig) { r.Cost = policy.CostConfig{Header: "X Cost", Max: 9} }), []string{`policy: rules[0].cost.header: "X Cost": want the name of a header`}},
		"cost default":   {with(func(r *policy.RuleConfig) { r.Cost.Default = -1 }), []string{"policy: rules[0].cost.default: -1: want at least 1"}},
		"huge default":   {with(func(r *policy.RuleConfig) { r.Cost.Default = math.MaxInt64 }), []string{"policy: rules[0].cost.default: 9223372036854775807: want at most 4503599627370495"}},
		"cost min":       {with(func(r *policy.RuleConfig) { r.Cost = policy.CostConfig{Header: "X-Cost", Min: -1, Max: 9} }), []string{"policy: rules[0].cost.min: -1: want at least 1"}},
		"min above":      {with(func(r *policy.RuleConfig) { r.Cost = policy.CostConfig{Header: "X-Cost", Min: 2, Max: 9} }), []string{"policy: rules[0].cost.min: 2: want at most the default, 1"}},
		"min of nothing": {with(func(r *policy.RuleConfig) { r.Cost.Min = 1 }), []string{"policy: rules[0].cost.header: missing: want the header that min bounds"}},
		"no max":         {with(func(r *policy.RuleConfig) { r.Cost.Header = "X-Cost" }), []string{"policy: rules[0].cost.max: missing: want the most that one request is charged"}},
		"max below":      {with(func(r *policy.RuleConfig) { r.Cost = policy.CostConfig{Header: "X-Cost", Default: 5, Max: 4} }), []string{"policy: rules[0].cost.max: 4: want at least the default, 5"}},
		"max of nothing": {with(func(r *policy.RuleConfig) { r.Cost.Max = 4 }), []string{"policy: rules[0].cost.header: missing: want the header that max bounds, or settle"}},
		"huge max":       {with(func(r *policy.RuleConfig) { r.Cost = policy.CostConfig{Header: "X-Cost", Max: math.MaxInt64} }), []string{"policy: rules[0].cost.max: 9223372036854775807: want at most 4503599627370495"}},
		"settle":         {with(func(r *policy.RuleConfig) { r.Settle, r.Cost.Max = "X-Actual-Cost", 4 }), []string{`policy: rules[0].settle: "X-Actual-Cost": want response:NAME`}},
		"settle no name": {with(func(r *policy.RuleConfig) { r.Settle, r.Cost.Max = "response:", 4 }), []string{`policy: rules[0].settle: "response:": want response:NAME`}},
		"settle no max":  {with(func(r *policy.RuleConfig) { r.Settle = "response:X-Actual-Cost" }), []string{"policy: rules[0].cost.max: missing: want the most that one request is charged"}},
		"exempt": {with(func(r *policy.RuleConfig) {
			r.Exempt = []string{"secret", "10.0.0.0/33", "fe80::1%eth0", "", "header:X-Key", "header:=secret", "header:X Key=secret", "cookie:c= ", "path:id=secret", "env:SECRET"}
		}), []string{
			"policy: rules[0].exempt[0]: want an address, a network such as 10.0.0.0/8, or header:NAME=VALUE", "policy: rules[0].exempt[1]: want an address",
			"policy: rules[0].exempt[2]: want an address", "policy: rules[0].exempt[3]: want an address", "policy: rules[0].exempt[4]: want header:NAME=VALUE",
			"policy: rules[0].exempt[5]: want header:NAME=VALUE", `policy: rules[0].exempt[6]: "header:X Key": "X Key" can't name a header`,
			"policy: rules[0].exempt[7]: blank: want a value", `policy: rules[0].exempt[8]: "path:id": "id" is no wildcard`, "policy: rules[0].exempt[9]: want an address",
		}},
		"deny": {with(func(r *policy.RuleConfig) {
			r.Deny = []string{"query:key=env:SLUICE_TEST_NONE", "query:key=env: ", "query:key=file:", "query:key=file:/none/key", "query:key=file:."}
		}), []string{
			"policy: rules[0].deny[0]: environment variable SLUICE_TEST_NONE is not set or empty: want one line with the value",
			`policy: rules[0].deny[1]: "env:" has no name`, `policy: rules[0].deny[2]: "file:" has no path`,
			"policy: rules[0].deny[3]: file /none/key can't be read", "policy: rules[0].deny[4]: file . is no regular file",
		}},
		"max_delay":      {limited(func(l *policy.LimitConfig) { l.MaxDelay = time.Second }), []string{at + "max_delay: 1s: want it with leaky_bucket alone, token_bucket holds no request"}},
		"less max_delay": {limited(func(l *policy.LimitConfig) { l.Algorithm, l.MaxDelay = "leaky", -1 }), []string{at + "max_delay: -1ns: want at least 0"}},
		"overrides": {limited(func(l *policy.LimitConfig) {
			l.Subject = "header:X-Key"
			l.Overrides = []policy.OverrideConfig{
				{}, {Subject: "secret", SubjectKey: "k", Limit: l.Limit}, {Subject: " ", Limit: l.Limit}, {Subject: "secret", Limit: l.Limit},
				{Subject: " secret", Limit: l.Limit}, {Subject: "other", Limit: algorithm.Limit{Count: 5, Period: time.Minute}},
				{SubjectKey: "k", Limit: l.Limit}, {SubjectKey: "k", Limit: l.Limit}, {Subject: "env:SLUICE_TEST_NONE", Limit: l.Limit},
			}
		}), []string{
			at + "overrides[0].burst: 0: want at least 1", at + "overrides[0].limit: Count 0: want at least 1", at + "overrides[0].subject: missing: want the subject",
			at + "overrides[1].subject: set beside a subject key", at + "overrides[2].subject: blank: want a value", at + "overrides[4].subject: is also that of overrides[3]",
			at + "overrides[5].burst: 0: want at least 1", at + "overrides[7].subject: is also that of overrides[6]",
			at + "overrides[8].subject: environment variable SLUICE_TEST_NONE is not set or empty",
		}},
		"override of ip": {limited(func(l *policy.LimitConfig) {
			l.Overrides = []policy.OverrideConfig{{Subject: "secret", Limit: l.Limit}, {Subject: "2001:db8::/56", Limit: l.Limit}, {Subject: "192.0.2.0/24", Limit: l.Limit}}
		}), []string{
			at + "overrides[0].subject: want an address, or an IPv6 network of 64 bits", at + "overrides[1].subject: want an address", at + "overrides[2].subject: want an address",
		}},
		"override of global": {limited(func(l *policy.LimitConfig) {
			l.Subject, l.Overrides = "global", []policy.OverrideConfig{{Subject: "secret", Limit: l.Limit}}
		}), []string{at + "overrides[0].subject: want global"}},
		"all at once": {policy.Config{Mode: "x", Headers: "y", Rules: []policy.RuleConfig{{}, {Name: "b"}}}, []string{
			"policy: headers: ", "policy: mode: ", "policy: rules[0].name: ", "policy: rules[0].match: ", "policy: rules[0].limits: ",
			"policy: rules[1].match: ", "policy: rules[1].limits: ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := policy.New(tt.config)
			if err == nil || rules != nil {
				t.Fatalf("New gave %v, %v: want nil and an error", rules, err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("%d faults, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("got  %s\nwant %s...", lines[i], want)
				}
			}
			if _, ok := errors.AsType[*policy.FieldError](err); !ok {
				t.Errorf("%T holds no *FieldError", err)
			}
			if strings.Contains(err.Error(), ".go:") || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells too much: %v", err)
			}
		})
	}
}

func TestNewFillsInDefaults(t *testing.T) {
	c := policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Rules: []policy.RuleConfig{
			{Name: "one", Match: "/one", Limits: []policy.LimitConfig{perMinute("ip")}},
			{Name: "two", Match: "/two", Denial: policy.Denial{Body: "no"}, OnOutage: policy.Deny, Limits: []policy.LimitConfig{
				{Algorithm: "leaky", Limit: algorithm.Limit{Count: 1, Period: time.Second, Burst: 2}, Subject: "global"},
				{Name: "mine", Algorithm: "fixed_window", Limit: algorithm.Limit{Count: 1, Period: time.Second}, Subject: "header:X-API-Key"},
			}},
		},
	}
	rules, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	got := rules.Config()
	if got.Store.Timeout != 50*time.Millisecond || got.Store.Prefix != "sluice" || got.Failover.TripAfter != 5 || got.Failover.OpenFor != time.Second ||
		got.IPv6Prefix != 64 || got.Headers != policy.HeadersDraft || got.Mode != policy.ModeEnforce {
		t.Errorf("got %+v", got)
	}
	one, two := rules.All()[0], rules.All()[1]
	if one.OnOutage != policy.Local || one.Denial != (policy.Denial{Status: 429}) || one.Forbidden != (policy.Denial{Status: 403}) {
		t.Errorf("got %+v", one)
	}
	if want := (policy.Denial{Status: 429, Type: "text/plain; charset=utf-8", Body: "no"}); two.OnOutage != policy.Deny || two.Denial != want {
		t.Errorf("got %+v", two)
	}
	for i, want := range []struct{ name, key, algorithm string }{
		{"token_bucket-ip", "one", "token_bucket"}, {"leaky_bucket-global", "two/leaky_bucket-global", "leaky_bucket"}, {"mine", "two/mine", "fixed_window"},
	} {
		l := append(append([]policy.Limit{}, one.Limits...), two.Limits...)[i]
		if l.Name != want.name || l.KeyRule != want.key || l.Algorithm != want.algorithm || l.Strategy == nil || l.Subject == nil {
			t.Errorf("got %+v, want %+v", l, want)
		}
	}
	if c.Rules[0].OnOutage != "" || c.Rules[0].Limits[0].Name != "" {
		t.Error("New wrote into the caller's Config")
	}

	again, err := policy.New(got)
	if err != nil || !reflect.DeepEqual(again.Config(), got) {
		t.Errorf("a Config with its defaults filled in is not what New makes of itself: %v", err)
	}
	got.Rules[0].Limits[0].Name = "changed"
	got.TrustedProxies[0] = netip.Prefix{}
	if again := rules.Config(); again.Rules[0].Limits[0].Name == "changed" || !again.TrustedProxies[0].IsValid() {
		t.Error("Config shares its slices with the rules")
	}
}

func TestRulesUseTheConfiguredAddresses(t *testing.T) {
	rules, err := policy.New(policy.Config{
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, IPv6Prefix: 48,
		Rules: []policy.RuleConfig{{Name: "a", Match: "/", Limits: []policy.LimitConfig{perMinute("ip"), perMinute("cookie:sid")}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Forwarded-For", "2001:db8:1:2::3")
	for _, a := range rules.Match(r)[0].Asks(r, 1) {
		if a.Key.Subject != "2001:db8:1::/48" {
			t.Errorf("%s: got %q", a.Key.Rule, a.Key.Subject)
		}
	}
}

func TestCatalogue(t *testing.T) {
	l := algorithm.Limit{Count: 5, Period: time.Second, Burst: 5}
	scripts := map[string]string{}
	for _, name := range append(policy.Algorithms(), "leaky") {
		st, err := policy.NewStrategy(name, l)
		if err != nil {
			t.Fatal(err)
		}
		script, _ := st.Lua()
		scripts[name] = script.Name
		if st, err := policy.NewStrategy(name, algorithm.Limit{}); err == nil || st != nil {
			t.Errorf("%s of no limit: got %v, %v: want nil and an error", name, st, err)
		}
		_, err = policy.NewStrategy(name, algorithm.Limit{Count: 5, Period: time.Second})
		if needs := err != nil; needs != policy.HasBurst(name) {
			t.Errorf("%s: HasBurst is %v, and without Burst: %v", name, policy.HasBurst(name), err)
		}
	}
	if len(scripts) != 5 || scripts["leaky"] != scripts["leaky_bucket"] || scripts["fixed_window"] == scripts["sliding_window"] {
		t.Errorf("got %q", scripts)
	}
	_, err := policy.NewStrategy("", l)
	if want := `policy: algorithm "": want one of token_bucket, fixed_window, sliding_window, leaky_bucket`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
