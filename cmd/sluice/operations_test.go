package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

var update = flag.Bool("update", false, "write what commands print into docs/operations.md")

// fence is a block of a page: its language, and its text.
var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// The session in docs/operations.md is one: each command prints what stands below it, but for times, sizes, and how busy the machine is.
func TestOperationsTranscripts(t *testing.T) {
	const page = "../../docs/operations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	commands := 0
	written := fence.ReplaceAllStringFunc(string(text), func(block string) string {
		m := fence.FindStringSubmatch(block)
		switch {
		case m[1] == "yaml":
			s.file(m[2])
		case strings.HasPrefix(m[2], "$ "):
			var b strings.Builder
			for line := range strings.Lines(m[2]) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					b.WriteString(line + s.run(strings.TrimSpace(command)))
					commands++
				}
			}
			if got, want := timeless(b.String()), timeless(m[2]); got != want && !*update {
				t.Errorf("%s has\n%s\nand now it is\n%s", page, want, got)
			}
			return "```text\n" + b.String() + "```"
		}
		return block
	})
	if commands < 12 {
		t.Errorf("%d commands: want the session", commands)
	}
	if *update {
		if err := os.WriteFile(page, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// session runs the commands of a page.
type session struct {
	t      *testing.T
	folder string
	files  []string // that are there yet to name
	redis  *redistest.Server
}

func newSession(t *testing.T) *session {
	redis := redistest.Start(t, "--maxmemory", "256mb")
	t.Setenv("REDIS_URL", "redis://"+redis.Addr)
	t.Setenv("API_KEY", "s3cret")
	return &session{t: t, folder: t.TempDir(), files: []string{"rules.yaml", "rules.new.yaml"}, redis: redis}
}

// file keeps a rule file of the page under the next name.
func (s *session) file(text string) {
	if len(s.files) == 0 {
		return
	}
	if err := os.WriteFile(filepath.Join(s.folder, s.files[0]), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.files = s.files[1:]
}

// run returns what a command prints.
func (s *session) run(command string) string {
	words := split(command)
	switch words[0] {
	case "curl":
		return s.requests(60)
	case "redis-cli":
		var args []any
		for _, word := range words[1:] {
			args = append(args, word)
		}
		reply, err := s.redis.Client().Do(s.t.Context(), args...).Text()
		if err != nil {
			s.t.Error(err)
		}
		return reply + "\n"
	}
	for i, word := range words {
		switch {
		case strings.HasPrefix(word, "examples/"):
			words[i] = "../../" + word
		case strings.HasSuffix(word, ".yaml"):
			words[i] = filepath.Join(s.folder, word)
		}
	}
	var out bytes.Buffer
	if exit := run(s.t.Context(), words[1:], &out, &out); exit > 1 {
		s.t.Errorf("%s: exit %d: %s", command, exit, &out)
	}
	return out.String()
}

// requests sends that many to a service on the first file, and counts their statuses as sort and uniq do.
func (s *session) requests(n int) string {
	rules, err := os.ReadFile(filepath.Join(s.folder, "rules.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	patient := write(s.t, strings.Replace(string(rules), "timeout: 50ms", "timeout: 10s", 1)) // on a busy machine, too
	limits, err := service.Open(s.t.Context(), patient, service.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	defer limits.Close()
	server := httptest.NewServer(limits.Middleware(http.HandlerFunc(echo)))
	defer server.Close()
	count := map[int]int{}
	for range n {
		req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, server.URL+"/api/items", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("X-API-Key", os.Getenv("API_KEY"))
		resp, err := server.Client().Do(req)
		if err != nil {
			s.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		count[resp.StatusCode]++
	}
	return fmt.Sprintf("%7d 200\n%7d 429\n", count[200], count[429])
}

// split is what a shell makes of a line: words, quotes of both kinds, and the one variable.
func split(line string) (words []string) {
	for _, m := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(line, -1) {
		word := strings.Trim(m, `"'`)
		if m[0] != '\'' {
			word = os.ExpandEnv(word)
		}
		words = append(words, word)
	}
	return words
}

// timeless is a text without what differs from run to run.
func timeless(text string) string {
	for _, r := range []struct{ what, as string }{
		{`(?m)^\w+ +(clock|rtt|script) .*(\n {17}.*)?$`, "$1"}, // a busy machine may be warned of
		{`\d{4}-\d\d-\d\dT[\d:]+Z`, "TIME"},
		{`\d{9,}`, "NUMBER"},
		{`[\d.]+ MB`, "SIZE"},
		{`Redis [\d.]+`, "Redis VERSION"},
		{`[\d.]+ µs on`, "µs on"},
		{`\b(\d+h)?(\d+m)?\d+(\.\d+)?(µs|ms|s)\b`, "DURATION"},
		{`\d+ of 500 `, "N of 500 "},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.as)
	}
	return text
}
