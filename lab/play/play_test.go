package play

import (
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func site(t *testing.T) *Site {
	t.Helper()
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestServe(t *testing.T) {
	s := site(t)
	for _, c := range []struct {
		method, path string
		status       int
		kind, begins string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"GET", "/index.html", 200, "text/html; charset=utf-8", "<!doctype html>"},
		{"GET", "/main.js", 200, "text/javascript; charset=utf-8", "//"},
		{"GET", "/style.css", 200, "text/css; charset=utf-8", "/*"},
		{"GET", "/wasm_exec.js", 200, "text/javascript; charset=utf-8", "// Copyright"},
		{"GET", "/sluice.wasm", 200, "application/wasm", "\x00asm"},
		{"GET", "/licences.txt", 200, "text/plain; charset=utf-8", "Go\n==\n"},
		{"HEAD", "/", 200, "text/html; charset=utf-8", ""},
		{"POST", "/", 405, "", "method not allowed"},
		{"GET", "/play.go", 404, "", ""},
		{"GET", "/../play.go", 404, "", ""},
		{"GET", "/page/main.js", 404, "", ""},
	} {
		r := httptest.NewRequest(c.method, "http://x/", nil)
		r.URL.Path = c.path
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.status || c.kind != "" && w.Header().Get("Content-Type") != c.kind || !strings.HasPrefix(w.Body.String(), c.begins) {
			t.Errorf("%s %s: %d, %s, %.20q", c.method, c.path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if c.status == 200 && w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: a browser may guess its type", c.path)
		}
	}
}

func TestExport(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folder")
	s := site(t)
	if err := s.Export(folder); err != nil {
		t.Fatal(err)
	}
	if err := s.Export(folder); err != nil { // again, over itself
		t.Fatal(err)
	}
	for name, want := range s.files {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(got) != len(want) {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	file := filepath.Join(folder, "index.html")
	if err := s.Export(file); err == nil {
		t.Error("exported into a file")
	}
}

// Nothing is loaded from elsewhere, and what is loaded is there.
func TestPageIsWhole(t *testing.T) {
	s := site(t)
	refers := regexp.MustCompile(`(?:import [^;]*?from |src=|href=|fetch\(|src: |href: )['"]([^'"]+)['"]`)
	for name, content := range s.files {
		if name == "sluice.wasm" || name == "licences.txt" || name == "wasm_exec.js" {
			continue
		}
		for _, m := range refers.FindAllStringSubmatch(string(content), -1) {
			if _, ok := s.files[strings.TrimPrefix(m[1], "./")]; !ok {
				t.Errorf("%s refers to %s, which is not there", name, m[1])
			}
		}
		if text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", ""); strings.Contains(text, "//cdn") || strings.Contains(text, "http://") || strings.Contains(text, "https://") {
			t.Errorf("%s names an address elsewhere", name)
		}
	}
}

// Every word that the reader sees is in one file: the others hold no text of several words, and every name that they
// look up is there.
func TestWordsAreInOneFile(t *testing.T) {
	words, err := embedded.ReadFile("page/strings.js")
	if err != nil {
		t.Fatal(err)
	}
	prose := regexp.MustCompile("['\"`][A-Z][a-z]+ [a-z]+[^'\"`]*['\"`]")
	lookup := regexp.MustCompile(`\btext\.([a-zA-Z]+)(?:\.([a-zA-Z]+))?`)
	err = fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".js" || name == "page/strings.js" {
			return err
		}
		content, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		code := regexp.MustCompile(`(?m)//.*$`).ReplaceAll(content, nil)
		if found := prose.Find(code); found != nil {
			t.Errorf("%s says %s", name, found)
		}
		for _, m := range lookup.FindAllSubmatch(code, -1) {
			for _, key := range m[1:] {
				if len(key) > 0 && !regexp.MustCompile(`\b`+string(key)+`\b`).Match(words) {
					t.Errorf("%s looks up text.%s, which is not among the words", name, key)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
