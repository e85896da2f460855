package play

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "build the engine for the browser anew, into built/")

// The engine that is checked in is made of the sources that are here: of the same Go code and Lua, but for comments and
// layout, of the same modules and by the same minor version of Go.
func TestBuiltIsUpToDate(t *testing.T) {
	want := sources(t)
	if *update {
		build(t)
		if err := os.WriteFile("built/sources.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("built/sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	built := strings.Split(string(got), "\n")
	for _, line := range strings.Split(want, "\n") {
		if !slices.Contains(built, line) {
			name, _, _ := strings.Cut(line, " ")
			t.Errorf("the engine in built/ is of another %s: make play", name)
		}
	}
	if !t.Failed() {
		t.Error("the engine in built/ is of more than is here: make play")
	}
}

// sources lists what the engine is made of: a line for each package of this module, module and Go version.
func sources(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if not .Standard}}{{.ImportPath}} {{.Module.Main}} {{.Module.Version}} {{.Dir}}{{range .GoFiles}} {{.}}{{end}}{{range .EmbedFiles}} {{.}}{{end}}{{end}}`,
		"./wasm")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=-mod=readonly")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var text strings.Builder
	version, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go1."), ".")
	fmt.Fprintf(&text, "go 1.%s\n", version)
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), " ")
		if len(parts) < 4 {
			continue
		}
		if parts[1] == "false" {
			fmt.Fprintf(&text, "%s %s\n", parts[0], parts[2])
			continue
		}
		sum := sha256.New()
		for _, file := range parts[4:] {
			content := normal(t, filepath.Join(parts[3], file))
			fmt.Fprintf(sum, "%s %d\n%s", file, len(content), content)
		}
		fmt.Fprintf(&text, "%s %x\n", parts[0], sum.Sum(nil))
	}
	return text.String()
}

// normal is a file's content; of Go, without comments and layout.
func normal(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(file) != ".go" {
		return content
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, content, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, files, tree); err != nil {
		t.Fatal(err)
	}
	return bytes.Join(bytes.Fields(b.Bytes()), []byte(" "))
}

// build compiles the engine and packs it, and takes the loader from the same Go.
func build(t *testing.T) {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "sluice.wasm")
	compile := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", raw, "./wasm")
	compile.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=-mod=readonly")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	binary, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(binary); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	goroot := strings.TrimSpace(string(root))
	loader, err := os.ReadFile(filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"sluice.wasm.gz": packed.Bytes(), "wasm_exec.js": loader, "licences.txt": licences(t, goroot)} {
		if err := os.WriteFile(filepath.Join("built", name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kB, packed %d kB", len(binary)/1000, packed.Len()/1000)
}

// licences are the texts that whoever passes the page on passes on: of this module, Go, and the modules in the engine.
func licences(t *testing.T, goroot string) []byte {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{.Path}} {{.Dir}}{{end}}`, "./wasm")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=-mod=readonly")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{"Go": goroot}
	for line := range strings.Lines(string(out)) {
		if name, folder, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			folders[name] = folder
		}
	}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		text, err := os.ReadFile(filepath.Join(folders[name], "LICENSE"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n\n%s\n\n", name, strings.Repeat("=", len(name)), bytes.TrimSpace(text))
	}
	return all.Bytes()
}
