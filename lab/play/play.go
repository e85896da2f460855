// Package play is the lab's playground: a page in the browser on which the engine itself decides, in virtual time,
// about traffic that the reader chooses. All of it is in this package: the page, and the engine compiled to
// WebAssembly. Nothing is loaded from elsewhere.
//
// The compiled engine is checked in, so that the page needs neither a Go toolchain nor a network. "make play" builds it
// anew, and a test says when that is due.
package play

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed page built
var embedded embed.FS

// A Site is the page's files by name, such as "index.html". It is immutable and safe for concurrent use.
type Site struct{ files map[string][]byte }

// Open unpacks the site.
func Open() (*Site, error) {
	s := &Site{files: map[string][]byte{}}
	err := fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			s.files[path.Base(name)], err = embedded.ReadFile(name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("play: page: %w", err)
	}
	for _, name := range []string{"wasm_exec.js", "licences.txt"} {
		if s.files[name], err = embedded.ReadFile("built/" + name); err != nil {
			return nil, fmt.Errorf("play: page: %w", err)
		}
	}
	if s.files["sluice.wasm"], err = unpack("built/sluice.wasm.gz"); err != nil {
		return nil, fmt.Errorf("play: engine: %w", err)
	}
	return s, nil
}

func unpack(name string) ([]byte, error) {
	packed, err := embedded.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// types are the media types that matter: a browser runs no module of another.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".wasm": "application/wasm", ".txt": "text/plain; charset=utf-8",
}

// ServeHTTP serves a file to GET and HEAD; the page itself at "/".
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	content, ok := s.files[name]
	switch {
	case !ok:
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache") // another version of the command may serve next
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// Export writes the site into a folder, which is made if need be, for any file server. Files of the same names are
// replaced, others stay.
func (s *Site) Export(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("play: export: %w", err)
	}
	var errs []error
	for name, content := range s.files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			errs = append(errs, fmt.Errorf("play: export: %w", err))
		}
	}
	return errors.Join(errs...)
}
