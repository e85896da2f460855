package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/internal/child"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(redistest.Tests{M: m}, goleak.IgnoreAnyFunction(child.Goroutine))
}

// open runs a rule file of that text until the test ends.
func open(t *testing.T, text string) (*service.Service, *gateway.Eyes) {
	t.Helper()
	eyes := &gateway.Eyes{}
	return openAt(t, filepath.Join(t.TempDir(), "rules.yaml"), text, eyes), eyes
}

// openAt is open for a file that the test knows.
func openAt(t *testing.T, path, text string, observer sluice.Observer) *service.Service {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(context.Background(), path, service.Options{Observer: observer, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
