package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServerIsGoneOnceStopped(t *testing.T) {
	s, err := startServer(t.Context(), realServer)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.what, "redis-server ") || s.check() != nil {
		t.Errorf("%q, %v: want its version, and that it runs", s.what, s.check())
	}
	s.stop()
	if _, err := os.Stat(filepath.Dir(s.addr)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v, want none", err)
	}
	if err := s.check(); err == nil {
		t.Error("check finds it running")
	}
}

func TestServerWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s, err := startServer(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if s.what != miniServer || s.check() != nil {
		t.Errorf("%q, %v: want miniredis", s.what, s.check())
	}
	if _, err := startServer(t.Context(), realServer); err == nil {
		t.Error("redis-server starts without a redis-server")
	}
}

// A program that is no server ends the wait when it ends; one that never answers, with the context.
func TestServerThatIsNone(t *testing.T) {
	if _, err := startServer(t.Context(), "false"); err == nil || !strings.Contains(err.Error(), "ended at once") {
		t.Errorf("false: %v", err)
	}
	sleeper := filepath.Join(t.TempDir(), "sleeper")
	if err := os.WriteFile(sleeper, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := startServer(ctx, sleeper); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > soon {
		t.Errorf("%v after %v: want the context's error", err, time.Since(start))
	}
}
