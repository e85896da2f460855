package redistest

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/sluice-go/sluice/internal/child"
)

// Server is a redis-server that belongs to one test, or is [Shared] by the tests of a package.
type Server struct {
	Addr string // host:port on loopback; it stays the same over Restart

	tb  testing.TB
	run *instance
}

// Start runs a server for the test t, empty and with nothing on disk, and kills it when t ends. extra are further
// arguments, such as "--maxmemory", "1mb".
func Start(t testing.TB, extra ...string) *Server {
	t.Helper()
	run, err := launch(extra)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(run.remove)
	return &Server{Addr: run.addr, tb: t, run: run}
}

// Client returns a client of the server that is closed when the test ends: with go-redis's defaults, but no
// maintenance notifications. Each edit may change its options.
func (s *Server) Client(edit ...func(*goredis.Options)) *goredis.Client {
	return newClient(s.tb, s.Addr, edit...)
}

func newClient(t testing.TB, addr string, edit ...func(*goredis.Options)) *goredis.Client {
	o := &goredis.Options{Addr: addr, MaintNotificationsConfig: quiet()}
	for _, f := range edit {
		f(o)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// quiet turns off a handshake that these servers don't know.
func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// Kill ends the server at once: connections break, and the port refuses new ones.
func (s *Server) Kill() { s.run.kill() }

// Restart kills the server, if it runs, and starts an empty one on the same address. A cluster node keeps its slots.
func (s *Server) Restart() {
	s.tb.Helper()
	if err := s.run.restart(); err != nil {
		s.tb.Fatalf("redistest: restart: %v", err)
	}
}

// Stop freezes the server as SIGSTOP does: it accepts connections and answers nothing until Cont.
func (s *Server) Stop() {
	s.tb.Helper()
	if err := s.run.signal((*child.Process).Pause); err != nil {
		s.tb.Fatalf("redistest: stop: %v", err)
	}
}

// Cont lets a stopped server run on: it then executes what it was sent meanwhile.
func (s *Server) Cont() {
	s.tb.Helper()
	if err := s.run.signal((*child.Process).Resume); err != nil {
		s.tb.Fatalf("redistest: cont: %v", err)
	}
}

// Flush deletes all keys, and leaves the scripts.
func (s *Server) Flush() {
	s.tb.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaintNotificationsConfig: quiet()})
	defer c.Close()
	if err := c.FlushAll(context.Background()).Err(); err != nil {
		s.tb.Fatalf("redistest: flush: %v", err)
	}
}
