package sluice_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/policy/rulefile"
)

// pages returns the text of every page of documentation by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.ToSlash(path)] = string(text)
	}
	top, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(top, under(t, "docs", func(path string) bool { return filepath.Ext(path) == ".md" })...) {
		read(path)
	}
	return found
}

// under returns the files in a folder that want takes.
func under(t *testing.T, folder string, want func(path string) bool) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && want(path) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// snippet is a fenced block of a page.
type snippet struct {
	language string // as the fence says; "" is a fault
	line     int    // of the fence
	text     string
}

func snippets(page string) []snippet {
	var found []snippet
	open := false
	for i, line := range strings.Split(page, "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !open:
			found = append(found, snippet{language: language, line: i + 1})
			open = true
		case fence:
			open = false
		case open:
			found[len(found)-1].text += line + "\n"
		}
	}
	return found
}

// flat is text without indentation and empty lines, so that code is the same at any depth.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return "\n" + b.String()
}

// Every Go snippet is a part of an example that runs, and every fence says what language it holds.
func TestDocSnippets(t *testing.T) {
	var examples []string
	for _, path := range under(t, ".", func(path string) bool {
		name := filepath.Base(path)
		example := strings.Contains(name, "example") && strings.HasSuffix(name, "_test.go")
		return example || strings.HasPrefix(path, "examples") && filepath.Ext(path) == ".go"
	}) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, flat(string(text)))
	}
	count := 0
	for path, page := range pages(t) {
		for _, s := range snippets(page) {
			if s.language == "" {
				t.Errorf("%s:%d: the fence names no language", path, s.line)
			}
			if s.language != "go" {
				continue
			}
			count++
			if !slices.ContainsFunc(examples, func(e string) bool { return strings.Contains(e, flat(s.text)) }) {
				t.Errorf("%s:%d: no example has these lines:\n%s", path, s.line, s.text)
			}
		}
	}
	if count < 2 {
		t.Errorf("%d Go snippets: want at least 2", count)
	}
}

// Every rule file in the documentation is valid.
func TestDocRules(t *testing.T) {
	count := 0
	for path, page := range pages(t) {
		for _, s := range snippets(page) {
			if s.language != "yaml" {
				continue
			}
			count++
			if _, err := rulefile.Parse(path, []byte(s.text)); err != nil {
				t.Errorf("%s:%d: %v", path, s.line, err)
			}
		}
	}
	if count == 0 {
		t.Error("no rule file: want one in README.md")
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// slugs are the anchors of a page's headings, as GitHub makes them.
func slugs(page string) []string {
	var found []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		found = append(found, strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return found
}

// Every relative link leads to a file or folder, and to a heading of it.
func TestDocLinks(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") { // another site
				continue
			}
			file := path
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link %s: %v", path, m[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(slugs(all[file]), anchor) {
				t.Errorf("%s: link %s: %s has no such heading", path, m[1], file)
			}
		}
	}
}

// README is one that is read: under 150 lines.
func TestDocReadmeLength(t *testing.T) {
	const most = 150
	if lines := strings.Count(pages(t)["README.md"], "\n"); lines == 0 || lines >= most {
		t.Errorf("README.md has %d lines: want under %d", lines, most)
	}
}

// Every decision says when and why it was made, what follows, and what lost.
func TestDocADRs(t *testing.T) {
	name := regexp.MustCompile(`^docs/adr/\d{4}-[a-z0-9-]+\.md$`)
	parts := []*regexp.Regexp{
		regexp.MustCompile(`(?m)^# \d{4}: .`),
		regexp.MustCompile(`(?m)^- Status: (proposed|accepted|superseded by \d{4})$`),
		regexp.MustCompile(`(?m)^- Date: \d{4}-\d{2}-\d{2}$`),
		regexp.MustCompile(`(?m)^## Context$`),
		regexp.MustCompile(`(?m)^## Decision$`),
		regexp.MustCompile(`(?m)^## Consequences$`),
		regexp.MustCompile(`(?m)^## Rejected$`),
	}
	count := 0
	for path, page := range pages(t) {
		if !strings.HasPrefix(path, "docs/adr/") {
			continue
		}
		count++
		if !name.MatchString(path) {
			t.Errorf("%s: want a name such as docs/adr/0001-what-was-decided.md", path)
		}
		number, _, _ := strings.Cut(filepath.Base(path), "-")
		if !strings.HasPrefix(page, "# "+number+": ") {
			t.Errorf("%s: want it to begin with %q", path, "# "+number+": ")
		}
		last := -1
		for _, p := range parts {
			at := p.FindStringIndex(page)
			if at == nil || at[0] <= last {
				t.Errorf("%s: nothing matches %s, or not in order", path, p)
				continue
			}
			last = at[0]
		}
	}
	if count == 0 {
		t.Error("no ADR")
	}
}

// The worked examples of docs/algorithms.md are lines of the vectors, which run in Go and in Lua.
func TestDocVectors(t *testing.T) {
	var vectors strings.Builder
	for _, path := range under(t, "algorithm", func(path string) bool {
		return filepath.Base(filepath.Dir(path)) == "testdata" && filepath.Ext(path) == ".txt"
	}) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		vectors.WriteString(flat(string(text)))
	}
	count := 0
	for _, s := range snippets(pages(t)["docs/algorithms.md"]) {
		for line := range strings.Lines(s.text) {
			if strings.HasPrefix(line, "at=") {
				count++
				if !strings.Contains(vectors.String(), "\n"+line) {
					t.Errorf("docs/algorithms.md:%d: no vector is: %s", s.line, line)
				}
			}
		}
	}
	if count < 10 {
		t.Errorf("%d lines of vectors: want at least 10", count)
	}
}

// The key that docs/lua.md explains holds what three charges of three, at the times of its transcript, leave there.
func TestDocKey(t *testing.T) {
	page := pages(t)["docs/lua.md"]
	limit, err := sluice.ParseLimit("5/min")
	if err != nil {
		t.Fatal(err)
	}
	limit.Burst = 10
	bucket := sluice.Must(tokenbucket.New(limit))
	var s algorithm.State
	for _, now := range []int64{1795997131060284, 1795997131066608, 1795997131073057} {
		s, _ = bucket.Take(s, now, 3)
	}
	_, denial := bucket.Take(s, 1795997131079140, 3)
	for _, want := range []string{
		fmt.Sprintf("2) \"%d\"\n3) \"ts\"\n4) \"%d\"\n5) \"unit\"\n6) \"%d\"\n", s[0], s[1], s[2]),
		fmt.Sprintf("%.6f s.", denial.RetryAfter.Seconds()),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/lua.md: want %q", want)
		}
	}
}
