package redistest

import (
	"sync"
	"testing"
)

// shared is the server of [Shared]: one in a test binary.
var shared struct {
	mu     sync.Mutex
	hooked bool // Main runs
	run    *instance
	err    error
}

// Shared returns a server that all tests of a package use, started at the first call and stopped by [Main]. Its keys
// stay from test to test, so a test uses keys or a prefix of its own; it must not kill or stop the server.
// The package's TestMain must call Main: without it, Shared fails.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.hooked {
		t.Fatal("redistest: Shared needs a TestMain that calls redistest.Main, which stops the server")
	}
	if shared.run == nil && shared.err == nil {
		shared.run, shared.err = launch(nil)
	}
	if shared.err != nil {
		t.Fatalf("redistest: %v", shared.err)
	}
	return &Server{Addr: shared.run.addr, tb: t, run: shared.run}
}

// Main runs the tests of a package, stops the server that they shared, and returns their exit code: for TestMain.
func Main(m *testing.M) int { return Tests{m}.Run() }

// Tests is Main as a value with one method, for goleak.VerifyTestMain(redistest.Tests{m}).
type Tests struct{ M *testing.M }

// Run is Main.
func (x Tests) Run() int {
	shared.mu.Lock()
	shared.hooked = true
	shared.mu.Unlock()
	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.run != nil {
			shared.run.remove()
			shared.run = nil
		}
	}()
	return x.M.Run()
}
