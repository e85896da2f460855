package algorithm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forbidden in an algorithm's Lua: what takes more than O(1), what prints a number with 14 digits, what only some
// servers have, and what is the store's business.
var forbidden = regexp.MustCompile(`\b(for|while|repeat|goto|cjson|cmsgpack|struct|bit|unpack|tostring|tonumber|string|table|redis|KEYS|ARGV|loadstring|pcall|require|math\.random)\b|\.\.|//|[%\w]#`)

// Every algorithm's Lua stays within what a store runs on all servers in constant time.
func TestLuaLint(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".lua" {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "--")
			if found := forbidden.FindString(code); found != "" {
				t.Errorf("%s:%d: %q: %s", path, i+1, found, strings.TrimSpace(line))
			}
			if strings.Contains(line, "[[") || strings.ContainsAny(code, `"'`) {
				t.Errorf("%s:%d: a string: %s", path, i+1, strings.TrimSpace(line))
			}
			if strings.TrimRight(line, " \t\r") != line {
				t.Errorf("%s:%d: space at the end", path, i+1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 4 {
		t.Errorf("%d Lua files: want one in each algorithm's folder", files)
	}
}

// The lint sees what it forbids.
func TestLuaLintSees(t *testing.T) {
	for _, code := range []string{
		"for i = 1, n do", "while true do", "repeat", "goto again", "return a .. b", "cjson.encode(s)", "return unpack(s)",
		"tostring(now)", "redis.call('GET')", "KEYS[1]", "ARGV[1]", "table.insert(t, 1)",
	} {
		if !forbidden.MatchString(code) {
			t.Errorf("%q passes", code)
		}
	}
	for _, code := range []string{"local before = a % b", "return n == 0, nil, 0, floor((full - before) / per)", "if ticks >= ceil(x / gain) then return 0 end"} {
		if found := forbidden.FindString(code); found != "" {
			t.Errorf("%q is refused for %q", code, found)
		}
	}
}
