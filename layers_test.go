package sluice_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sluice-go/sluice"

// layers is the table of docs/design: a package imports only layers below its own. The first pattern that matches a
// package's folder counts.
var layers = []struct {
	folder string // as path.Match reads it
	layer  int
}{
	{"algorithm", 0},
	{"algorithm/internal/*", 5}, // arithmetic that algorithms share
	{"internal/child", 5},       // processes that end with this one
	{"internal/outgoing", 20},   // calls to others, which wait for their turn
	{"internal/charging", 29},   // limits of a call that are charged together
	{"algorithm/algorithmtest", support}, {"store/storetest", support}, {"internal/redistest", support},
	{"algorithm/*", 10}, {".", 10},
	{"store/*", 20}, {"failover", 20}, {"policy", 20},
	{"policy/rulefile", 30}, {"httplimit", 30}, {"grpclimit", 30}, {"telemetry", 29}, {"telemetry/*", 30},
	{"lab/sim", 29}, {"lab", 30}, {"lab/play/engine", 30}, {"lab/play/wasm", 50}, {"lab/play", 30},
	{"service", 40}, {"gateway", 45},
	{"cmd/*", 50}, {"examples/*", 50},
}

// support is the layer of test support, which stands on layers 0 to 2 and is imported by tests and its like alone.
const support = 25

// layerOf returns a folder's layer; false if the table lacks it.
func layerOf(folder string) (int, bool) {
	for _, l := range layers {
		if ok, _ := path.Match(l.folder, folder); ok {
			return l.layer, true
		}
	}
	return 0, false
}

// only says who may import what, beyond the layers: non-test files of these folders.
var only = []struct {
	what  string
	match func(imported string) bool
	by    []string
}{
	{"an algorithm", isAlgorithm, []string{"policy", "lab", "lab/*", "lab/play/*", "store/storetest", "algorithm/algorithmtest", "examples/*"}},
	{"go-redis", within("github.com/redis/go-redis"), []string{"store/redis", "service", "lab", "internal/redistest"}},
	{"miniredis", within("github.com/alicebob/miniredis"), []string{"lab", "internal/redistest", "store/storetest", "algorithm/algorithmtest"}},
	{"a Lua VM", within("github.com/yuin/gopher-lua"), []string{"algorithm/algorithmtest"}},
	{"a watcher of files", within("github.com/fsnotify"), []string{"service"}},
	{"Envoy's API", within("github.com/envoyproxy"), []string{"gateway"}},
	{"test support", isSupport, []string{"algorithm/algorithmtest", "store/storetest", "internal/redistest"}},
}

func within(prefix string) func(string) bool {
	return func(imported string) bool { return strings.HasPrefix(imported, prefix) }
}

func isAlgorithm(imported string) bool {
	folder, own := strings.CutPrefix(imported, module+"/")
	l, _ := layerOf(folder)
	return own && l == 10
}

func isSupport(imported string) bool {
	folder, own := strings.CutPrefix(imported, module+"/")
	l, _ := layerOf(folder)
	return own && l == support
}

// vague are names that say nothing of what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"}

// source is what the rules need to know of one non-test file.
type source struct {
	file    string // from the root, with slashes
	pkg     string
	imports []string
	inits   int // functions named init
}

func (s source) folder() string { return path.Dir(s.file) }

// breaches returns what the files do that the rules forbid.
func breaches(files []source) []string {
	var found []string
	for _, f := range files {
		report := func(format string, args ...any) {
			found = append(found, f.file+": "+fmt.Sprintf(format, args...))
		}
		mine, known := layerOf(f.folder())
		if !known {
			report("package %s is in no layer: add it to the table", f.folder())
			continue
		}
		if f.inits > 0 {
			report("func init: nothing registers itself")
		}
		if slices.Contains(vague, f.pkg) {
			report("package %s: name it after what it is for", f.pkg)
		}
		for _, imported := range f.imports {
			for _, o := range only {
				allowed := slices.ContainsFunc(o.by, func(folder string) bool { ok, _ := path.Match(folder, f.folder()); return ok })
				if o.match(imported) && !allowed && !(f.folder() == "lab" && imported == module+"/internal/redistest") {
					report("imports %s: %s is imported by %s alone", imported, o.what, strings.Join(o.by, ", "))
				}
			}
			folder, own := strings.CutPrefix(imported, module)
			if !own || folder != "" && folder[0] != '/' {
				continue
			}
			folder = path.Clean(strings.TrimPrefix(folder, "/"))
			theirs, known := layerOf(folder)
			switch {
			case !known:
				report("imports %s, which is in no layer: add it to the table", folder)
			case mine == support && theirs == support:
			case theirs >= mine:
				report("imports %s of layer %.1f, from layer %.1f", folder, float64(theirs)/10, float64(mine)/10)
			}
		}
	}
	return found
}

// walk calls f with every file of the module that has one of the extensions: not in testdata, hidden folders, or
// modules of their own.
func walk(t *testing.T, extension string, f func(file string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".":
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if nested == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
				return fs.SkipDir
			}
		case !d.IsDir() && filepath.Ext(name) == extension:
			f(filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources reads the module's non-test Go files.
func sources(t *testing.T) []source {
	t.Helper()
	var files []source
	walk(t, ".go", func(file string) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s := source{file: file, pkg: tree.Name.Name}
		for _, i := range tree.Imports {
			s.imports = append(s.imports, strings.Trim(i.Path.Value, "`\""))
		}
		for _, d := range tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				s.inits++
			}
		}
		files = append(files, s)
	})
	if len(files) < 10 {
		t.Fatalf("%d Go files: run from the module's root", len(files))
	}
	return files
}

// A package imports only layers below its own.
func TestLayers(t *testing.T) {
	for _, breach := range breaches(sources(t)) {
		t.Error(breach)
	}
}

func TestLayersSeesBreaches(t *testing.T) {
	own := func(folder string) string { return module + "/" + folder }
	const (
		goRedis   = "github.com/redis/go-redis/v9"
		miniredis = "github.com/alicebob/miniredis/v2"
	)
	for _, c := range []struct {
		file     source
		breaches string // what its report says; "" if it is in order
	}{
		{source{file: "sluice.go", imports: []string{"context", own("algorithm")}}, ""},
		{source{file: "algorithm/leaky/leaky.go", imports: []string{own("algorithm"), own("algorithm/internal/level")}}, ""},
		{source{file: "store/redis/redis.go", imports: []string{module, own("algorithm"), goRedis}}, ""},
		{source{file: "policy/catalogue.go", imports: []string{own("algorithm/leaky")}}, ""},
		{source{file: "gateway/check.go", imports: []string{own("service"), own("httplimit")}}, ""},
		{source{file: "lab/race.go", imports: []string{goRedis, miniredis, own("algorithm/leaky"), own("store/redis"), own("internal/redistest")}}, ""},
		{source{file: "store/storetest/probe.go", imports: []string{module, own("algorithm/leaky"), own("algorithm/algorithmtest")}}, ""},
		{source{file: "cmd/sluice/main.go", imports: []string{own("gateway"), "github.com/alecthomas/kong"}}, ""},

		{source{file: "algorithm/algorithm.go", imports: []string{module}}, "layer"},
		{source{file: "algorithm/internal/level/level.go", imports: []string{own("algorithm/leaky")}}, "layer"},
		{source{file: "sluice.go", imports: []string{own("algorithm/tokenbucket")}}, "layer"},
		{source{file: "sluice.go", imports: []string{own("store/local")}}, "layer"},
		{source{file: "failover/guard.go", imports: []string{own("store/local")}}, "layer"},
		{source{file: "store/local/local.go", imports: []string{own("store/redis")}}, "layer"},
		{source{file: "store/local/local.go", imports: []string{goRedis}}, "go-redis"},
		{source{file: "store/local/local.go", imports: []string{own("algorithm/leaky")}}, "an algorithm"},
		{source{file: "failover/breaker.go", imports: []string{goRedis + "/internal/pool"}}, "go-redis"},
		{source{file: "service/service.go", imports: []string{miniredis}}, "miniredis"},
		{source{file: "grpclimit/x.go", imports: []string{"github.com/envoyproxy/go-control-plane/envoy/x"}}, "Envoy"},
		{source{file: "service/service.go", imports: []string{own("gateway")}}, "layer"},
		{source{file: "service/service.go", imports: []string{own("algorithm/leaky")}}, "an algorithm"},
		{source{file: "service/service.go", imports: []string{own("internal/redistest")}}, "test support"},
		{source{file: "cmd/sluice/lab.go", imports: []string{own("store/storetest")}}, "test support"},
		{source{file: "lab/lab.go", imports: []string{own("store/storetest")}}, "test support"},
		{source{file: "internal/redistest/server.go", imports: []string{own("service")}}, "layer"},
		{source{file: "httplimit/limit.go", imports: []string{own("grpclimit")}}, "layer"},
		{source{file: "telemetry/prom/prom.go", imports: []string{own("lab")}}, "layer"},
		{source{file: "policy/policy.go", imports: []string{own("policy/rulefile")}}, "layer"},
		{source{file: "policy/policy.go", imports: []string{own("rules")}}, "add it to the table"},
		{source{file: "rules/rules.go"}, "add it to the table"},
		{source{file: "policy/deep/er/x.go"}, "add it to the table"},
		{source{file: "policy/policy.go", inits: 1}, "init"},
		{source{file: "store/helpers/x.go", pkg: "helpers"}, "name it"},
	} {
		got := strings.Join(breaches([]source{c.file}), "\n")
		if c.breaches == "" && got != "" || !strings.Contains(got, c.breaches) {
			t.Errorf("%s importing %v: %q, want %q", c.file.file, c.file.imports, got, c.breaches)
		}
	}
}

// light are the packages that a program links which only limits rates; heavy is what they must not pull in.
var (
	light = []string{".", "./algorithm/...", "./store/...", "./failover", "./policy", "./httplimit"}
	heavy = regexp.MustCompile(`^(google\.golang\.org/(grpc|protobuf)|go\.opentelemetry\.io|github\.com/(envoyproxy|prometheus|fsnotify|alicebob|yuin|alecthomas))/|` +
		`(^|/)yaml([./]|$)`)
)

// heavies returns what is heavy in a list of packages.
func heavies(deps []string) (found []string) {
	for _, d := range deps {
		if heavy.MatchString(d) {
			found = append(found, d)
		}
	}
	return found
}

func TestLightPackagesStayLight(t *testing.T) {
	list := func(args ...string) []string {
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %v: %v", args, err)
		}
		return strings.Fields(string(out))
	}
	var patterns []string
	for _, p := range light {
		if _, err := os.Stat(strings.TrimSuffix(p, "/...")); err == nil {
			patterns = append(patterns, p)
		}
	}
	pkgs := slices.DeleteFunc(list(patterns...), isSupport)
	for _, heavy := range heavies(list(append([]string{"-deps"}, pkgs...)...)) {
		t.Errorf("%v depend on %s", patterns, heavy)
	}
}

func TestHeaviesSeesThem(t *testing.T) {
	want := []string{"google.golang.org/grpc/codes", "sigs.k8s.io/yaml", "go.yaml.in/yaml/v4", "gopkg.in/yaml.v3", "go.opentelemetry.io/otel/metric",
		"github.com/prometheus/client_golang/prometheus", "github.com/fsnotify/fsnotify", "github.com/envoyproxy/go-control-plane/envoy", "google.golang.org/protobuf/proto"}
	ok := []string{"context", "net/http", "github.com/redis/go-redis/v9/internal/otel", module + "/policy", module + "/store/local"}
	if got := heavies(append(ok, want...)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// luaWords are what the store's scripts must not use: Lua numbers that pass through text lose digits, and some servers
// lack the rest. (Package algorithm tests the algorithms' files.)
var (
	luaWords = []string{"cjson", "cmsgpack", "struct", "unpack", "tostring", "loadstring", "random", ".."}
	luaToken = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*|\.\.+|\S`)
)

// luaBreaches returns the forbidden words in a script, comments and strings left out.
func luaBreaches(text string) (found []string) {
	for _, word := range luaToken.FindAllString(luaCode(text), -1) {
		if slices.Contains(luaWords, word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	return found
}

// luaCode is a script without its comments and with its strings empty.
func luaCode(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "--[["):
			end := strings.Index(text[i:], "]]")
			if end < 0 {
				return b.String()
			}
			i += end + 1
		case strings.HasPrefix(text[i:], "--"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return b.String()
			}
			i += end - 1
		case c == '\'' || c == '"':
			b.WriteString("''")
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func TestLuaIsPlain(t *testing.T) {
	files := 0
	walk(t, ".lua", func(file string) {
		if !strings.HasPrefix(file, "store/") {
			return
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files++
		for _, word := range luaBreaches(string(text)) {
			t.Errorf("%s: uses %s", file, word)
		}
		if code := luaCode(string(text)); strings.Contains(code, "redis") && !strings.Contains(code, "KEYS") {
			t.Errorf("%s: calls Redis, and has its keys from elsewhere than KEYS", file)
		}
	})
	if files == 0 {
		t.Error("no script under store")
	}
}

func TestLuaBreaches(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"local t = call('TIME') -- 1.. by name, cjson\nfor i = 7, #ARGV do p[i - 2] = tonumber(ARGV[i]) end", nil},
		{"local x = '..' .. \"a\\\"..\"", []string{".."}},
		{"return cjson.encode(x)", []string{"cjson"}},
		{"--[[ unpack\n]] call(unpack(args))", []string{"unpack"}},
		{"local unpacked, tostringy = 1, 2", nil},
		{"redis.call('HSET', k, tostring(n))", []string{"tostring"}},
	} {
		if got := luaBreaches(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.text, got, c.want)
		}
	}
}
