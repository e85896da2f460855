package grpclimit_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/grpclimit"
	"github.com/sluice-go/sluice/service"
)

// follow opens a rule file and returns an interceptor on it, and what edits the file.
func follow(t *testing.T, text string) (*service.Service, grpc.UnaryServerInterceptor, func(text string)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	s, err := service.Open(t.Context(), path, service.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, grpclimit.New(grpclimit.Options{Current: s.Current}).UnaryServerInterceptor(), func(text string) {
		t.Helper()
		write(text)
		if err := s.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

const followed = "%s\nrules: [{name: cart, match: /grpc.testing.TestService/, limits: [{algorithm: fixed_window, limit: %d/30d, subject: global%s}]}]"

// A call is decided by the file as it is now, on the counters that HTTP requests have, too.
func TestCurrentFollowsTheFile(t *testing.T) {
	s, calls, edit := follow(t, fmt.Sprintf(followed, "", 2, ""))
	wantCalls := func(what string, want ...codes.Code) {
		t.Helper()
		for _, code := range want {
			_, err := calls(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod}, func(context.Context, any) (any, error) { return nil, nil })
			if err != nil || code != codes.OK {
				t.Log(what)
				wantCode(t, err, code)
			}
		}
	}
	wantCalls("at first", codes.OK)
	w := httptest.NewRecorder()
	s.Middleware(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodPost, unaryMethod, nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("the request after a call: %d, want it to pass", w.Code)
	}
	wantCalls("after a call and a request", codes.ResourceExhausted)
	edit(fmt.Sprintf(followed, "", 3, ""))
	wantCalls("with one more", codes.OK, codes.ResourceExhausted)
	edit(fmt.Sprintf(followed, "mode: shadow", 3, ""))
	wantCalls("in shadow mode", codes.OK, codes.OK)
	edit(fmt.Sprintf(followed, "", 3, ""))
	wantCalls("after shadow mode", codes.ResourceExhausted)
	edit(fmt.Sprintf(followed, "", 3, ", shadow: true"))
	wantCalls("as a shadow limit", codes.OK)
	edit(fmt.Sprintf(followed, "mode: off", 3, ""))
	wantCalls("off", codes.OK)
	edit(fmt.Sprintf(followed, "mode: local", 3, ""))
	wantCalls("again, in mode local", codes.ResourceExhausted)
}

// Calls under way while the file is read again are each decided by one reading: its rules on its stores. Fifty readings
// lose no charge and lend none.
func TestCurrentUnderLoad(t *testing.T) {
	const budget, callers = 400, 4
	_, calls, edit := follow(t, fmt.Sprintf(followed, "", budget, ""))
	var passed, refused [callers]int
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := calls(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: unaryMethod}, func(context.Context, any) (any, error) { return nil, nil })
				if err == nil {
					passed[i]++
					continue
				}
				wantCode(t, err, codes.ResourceExhausted)
				refused[i]++
			}
		})
	}
	for n := range 50 {
		edit(fmt.Sprintf(followed, fmt.Sprintf("# %d", n), budget, ""))
	}
	close(stop)
	wg.Wait()
	var admitted, denied int
	for i := range callers {
		admitted, denied = admitted+passed[i], denied+refused[i]
	}
	if admitted != budget && denied > 0 || admitted > budget {
		t.Errorf("%d pass and %d are refused while the file is read again, want %d", admitted, denied, budget)
	}
}
