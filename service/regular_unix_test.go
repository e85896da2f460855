//go:build unix

package service_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/service"
)

// What is no regular file is refused by its name, before a read of it could block: at the start, and in a reload, which
// leaves the rules as they were.
func TestIrregularFile(t *testing.T) {
	dir := t.TempDir()
	pipe, socket, aLink := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link(t, pipe, aLink)
	for file, kind := range map[string]string{
		pipe: "a pipe", aLink: "a pipe", socket: "a socket", dir: "a directory", os.DevNull: "a device",
	} {
		path := write(t, "", rules(1))
		s := open(t, path, service.Options{})
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		link(t, file, path)
		for what, read := range map[string]func(context.Context) error{
			"Reload": s.Reload,
			"Open": func(ctx context.Context) error {
				s, err := service.Open(ctx, path, service.Options{Logger: slog.New(slog.DiscardHandler)})
				if err == nil {
					s.Close()
				}
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			done := make(chan error, 1)
			go func() { done <- read(ctx) }()
			select {
			case err := <-done:
				if want := "service: rule file " + path + ": " + kind + ": want a regular file"; err == nil || err.Error() != want {
					t.Errorf("%s of %s: %v, want %s", what, kind, err, want)
				}
			case <-ctx.Done():
				t.Fatalf("%s of %s has not returned", what, kind)
			}
			cancel()
		}
		if st := s.Status(); !strings.Contains(st.LastError, kind) || st.Refusals != 1 || get(s, "/").StatusCode != 200 {
			t.Errorf("%s: status %+v, want the refusal, and the old rules in force", kind, st)
		}
	}
}

// A pipe that is put in the file's place after the look at it is refused, too, and blocks nothing.
func TestPipeInPlaceOfFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- service.ReadOpened(pipe) }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "a pipe: want a regular file") {
			t.Errorf("%v, want that it is a pipe", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the pipe blocks who opens it")
	}
}
