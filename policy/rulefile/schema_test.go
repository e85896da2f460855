package rulefile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/policy/rulefile"
)

// schema returns the published schema, ready to judge.
func schema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(rulefile.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// value is a YAML file as an editor hands it to a schema: times are text.
func value(t *testing.T, file string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(file), &v); err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	return plainOf(v)
}

func plainOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainOf(e)
		}
	case map[any]any:
		m := map[string]any{}
		for k, e := range v {
			m[k.(string)] = plainOf(e)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plainOf(e)
		}
	case time.Time:
		return v.Format(time.RFC3339)
	}
	return v
}

// fences are the blocks of that language in a page.
func fences(page, language string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		found = append(found, m[1])
	}
	return found
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// good are files that Parse takes, by what they are.
func good(t *testing.T) map[string]string {
	files := map[string]string{
		"good.yaml":           read(t, "testdata", "good.yaml"),
		"examples/rules.yaml": read(t, "..", "..", "examples", "rules.yaml"),
		"commented":           uncommented(read(t, "..", "..", "examples", "rules.yaml")),
	}
	for _, page := range []string{"docs/rules.md", "README.md"} {
		for i, text := range fences(read(t, "..", "..", page), "yaml") {
			files[page+" "+string(rune('a'+i))] = text
		}
	}
	return files
}

// uncommented is a file with its commented examples in force: lines that begin with "#| ".
func uncommented(file string) string {
	return strings.ReplaceAll(file, "#| ", "")
}

func TestSchemaTakesWhatParseTakes(t *testing.T) {
	s := schema(t)
	for name, file := range good(t) {
		if _, err := rulefile.Parse(name, []byte(file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Validate(value(t, file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, limit := range []string{"100/10s", "5/min", "5/m", "1/30d", "1/day", "3/7us", "3/7µs", "7/1h30m", "7/1.5s", "\" 100 / 10 s \"", "007/1s", "1/hour", "1/sec"} {
		file := "rules: [{name: a, match: /, limits: [{algorithm: fixed_window, limit: " + limit + ", subject: ip}]}]"
		if _, err := rulefile.Parse(limit, []byte(file)); err != nil {
			t.Error(err)
		}
		if err := s.Validate(value(t, file)); err != nil {
			t.Errorf("%s: %v", limit, err)
		}
	}
}

// What the schema refuses, Parse refuses, and the other way round where a schema can tell.
func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	const limit = "{algorithm: token_bucket, limit: 5/s, subject: ip}"
	top := func(fields string) string {
		return fields + "\nrules: [{name: a, match: /, limits: [" + limit + "]}]\n"
	}
	rule := func(fields string) string {
		return "rules: [{name: a, match: /, limits: [" + limit + "], " + fields + "}]\n"
	}
	lim := func(fields string) string { return "rules: [{name: a, match: /, limits: [{" + fields + "}]}]\n" }
	override := func(fields string) string {
		return lim("algorithm: token_bucket, limit: 5/s, subject: ip, overrides: [{" + fields + "}]")
	}
	s := schema(t)
	for _, file := range []string{
		"mode: off\n", "rules: []\n", "rules: {}\n",
		top("colour: red"), top("mode: dry"), top("mode: true"), top("headers: rfc"), top("ipv6_prefix: 0"), top("ipv6_prefix: 129"), top("ipv6_prefix: 6.5"), top("ipv6_prefix: \"64\""),
		top("trusted_proxies: 10.0.0.0/8"), top("trusted_proxies: [proxy.example]"), top("trusted_proxies: [\"fe80::1%eth0\"]"), top("trusted_proxies: [7]"),
		top("store: {redis: \"env:\"}"), top("store: {redis: redis}"), top("store: {timeout: 50}"), top("store: {timeout: 50 ms}"), top("store: {timeout: soon}"), top("store: {prefix: \"a{b}\"}"), top("store: {pool: 5}"), top("store: x"),
		top("failover: {trip_after: 0}"), top("failover: {open_for: 1}"), top("failover: {instances: many}"), top("failover: {instances: 0}"), top("failover: {x: 1}"),
		"rules: [{match: /, limits: [" + limit + "]}]\n", "rules: [{name: a, limits: [" + limit + "]}]\n", "rules: [{name: a, match: /}]\n", "rules: [{name: a, match: /, limits: []}]\n",
		"rules: [{name: a/b, match: /, limits: [" + limit + "]}]\n", "rules: [{name: a, match: login, limits: [" + limit + "]}]\n", "rules: [{name: 404, match: /, limits: [" + limit + "]}]\n",
		rule("on_outage: open"), rule("denial: {status: 200}"), rule("denial: {status: 429, colour: red}"), rule("denial: {type: text/plain}"), rule("denial: {type: plain, body: x}"), rule("shadow: true"),
		rule("cost: 5"), rule("cost: {default: 0}"), rule("cost: {header: X-Cost}"), rule("cost: {header: X Cost, max: 5}"), rule("cost: {header: X-Cost, max: 1.5}"), rule("cost: {unit: x}"), rule("cost: {header: X-Cost, min: -1, max: 5}"),
		rule("settle: X-Actual-Cost, cost: {max: 5}"), rule("settle: response:X-Actual-Cost"), rule("settle: response:X-Actual-Cost, cost: {default: 2}"),
		rule("exempt: 10.0.0.0/8"), rule("exempt: [secret]"), rule("deny: [\"header:X-Key\"]"), rule("deny: [\"jwt:sub=x\"]"), rule("deny: [5]"),
		lim("limit: 5/s, subject: ip"), lim("algorithm: token_bucket, subject: ip"), lim("algorithm: token_bucket, limit: 5/s"), lim("algorithm: gcra, limit: 5/s, subject: ip"),
		lim("algorithm: token_bucket, limit: 5/fortnight, subject: ip"), lim("algorithm: token_bucket, limit: 0/s, subject: ip"), lim("algorithm: token_bucket, limit: -5/s, subject: ip"), lim("algorithm: token_bucket, limit: 5, subject: ip"), lim("algorithm: token_bucket, limit: NaN/s, subject: ip"),
		lim("algorithm: token_bucket, limit: 5/s, burst: 1.5, subject: ip"), lim("algorithm: token_bucket, limit: 5/s, burst: -1, subject: ip"), lim("algorithm: token_bucket, limit: 5/s, subject: user"), lim("algorithm: token_bucket, limit: 5/s, subject: \"header:X Key\""), lim("algorithm: token_bucket, limit: 5/s, subject: \"cookie:\""),
		lim("algorithm: token_bucket, limit: 5/s, subject: ip, colour: red"), lim("algorithm: token_bucket, limit: 5/s, subject: ip, shadow: maybe"), lim("algorithm: token_bucket, limit: 5/s, subject: ip, max_delay: 1s"), lim("algorithm: leaky, limit: 5/s, subject: ip, max_delay: 1"), lim("algorithm: token_bucket, limit: 5/s, subject: ip, name: \"a b\""),
		override(""), override("limit: 5/s"), override("subject: 192.0.2.1"), override("subject: 5, limit: 5/s"), override("subject: 192.0.2.1, limit: 5"), override("subject: 192.0.2.1, limit: 5/s, until: tomorrow"), override("subject: 192.0.2.1, limit: 5/s, until: 5"), override("subject: 192.0.2.1, limit: 5/s, colour: red"),
		lim("algorithm: token_bucket, limit: 5/s, subject: ip, overrides: {}"),
	} {
		if _, err := rulefile.Parse("f", []byte(file)); err == nil {
			t.Errorf("Parse takes\n%s", file)
		}
		if err := s.Validate(value(t, file)); err == nil {
			t.Errorf("the schema takes\n%s", file)
		}
	}
}

// sections are places of a file, and how to put a field there.
var sections = map[string]string{
	"":                              "%\n",
	"store.":                        "store: {%}\n",
	"failover.":                     "failover: {%}\n",
	"rules[].":                      "rules: [{%}]\n",
	"rules[].denial.":               "rules: [{denial: {%}}]\n",
	"rules[].cost.":                 "rules: [{cost: {%}}]\n",
	"rules[].limits[].":             "rules: [{limits: [{%}]}]\n",
	"rules[].limits[].overrides[].": "rules: [{limits: [{overrides: [{%}]}]}]\n",
}

// known are the fields that Parse knows, as it says itself.
func known(t *testing.T) []string {
	t.Helper()
	var fields []string
	for at, file := range sections {
		_, err := rulefile.Parse("f", []byte(strings.Replace(file, "%", "no-such-field: x", 1)))
		if err == nil {
			t.Fatalf("Parse takes an unknown field in %s", file)
		}
		m := regexp.MustCompile(`no-such-field: unknown field: want one of (.*)`).FindStringSubmatch(err.Error())
		if m == nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, name := range strings.Split(m[1], ", ") {
			fields = append(fields, at+name)
		}
	}
	slices.Sort(fields)
	return fields
}

// The schema, the reference and Parse know the same fields.
func TestFieldsAreTheSameEverywhere(t *testing.T) {
	want := known(t)
	if len(want) < 40 {
		t.Fatalf("only %d fields: %q", len(want), want)
	}
	var inDocs []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.\\[\\]]+)` \\|.*\\|.*\\|.*\\|$").FindAllStringSubmatch(read(t, "..", "..", "docs", "rules.md"), -1) {
		inDocs = append(inDocs, m[1])
	}
	slices.Sort(inDocs)
	same(t, "docs/rules.md", inDocs, want)

	var root map[string]any
	if err := json.Unmarshal(rulefile.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var inSchema []string
	properties(root, root, "", &inSchema)
	slices.Sort(inSchema)
	same(t, "the schema", inSchema, want)
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, f := range want {
		if !slices.Contains(got, f) {
			t.Errorf("%s lacks %s", what, f)
		}
	}
	for i, f := range got {
		if !slices.Contains(want, f) {
			t.Errorf("%s has %s, which Parse does not know", what, f)
		}
		if i > 0 && got[i-1] == f {
			t.Errorf("%s has %s twice", what, f)
		}
	}
}

// properties appends the paths of all fields that a schema has.
func properties(root, s map[string]any, at string, list *[]string) {
	if ref, ok := s["$ref"].(string); ok {
		s = root["definitions"].(map[string]any)[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	if items, ok := s["items"].(map[string]any); ok {
		properties(root, items, at+"[]", list)
	}
	fields, _ := s["properties"].(map[string]any)
	for name, f := range fields {
		path := strings.TrimPrefix(at+"."+name, ".")
		*list = append(*list, path)
		properties(root, f.(map[string]any), path, list)
	}
}
