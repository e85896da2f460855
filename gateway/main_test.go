package gateway_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

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
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	eyes := &gateway.Eyes{}
	s, err := service.Open(context.Background(), path, service.Options{Observer: eyes, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, eyes
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
