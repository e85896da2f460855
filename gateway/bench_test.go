package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/service"
)

// blank is a ResponseWriter that keeps nothing.
type blank struct{ h http.Header }

func (b blank) Header() http.Header         { return b.h }
func (b blank) Write(p []byte) (int, error) { return len(p), nil }
func (b blank) WriteHeader(int)             {}

// What a check costs beside its HTTP exchange, in process.
func BenchmarkCheck(b *testing.B) {
	path := filepath.Join(b.TempDir(), "rules.yaml")
	const rules = "trusted_proxies: [127.0.0.1]\nrules:\n  - {name: all, match: /, limits: [{algorithm: token_bucket, limit: 1000000/s, subject: ip}]}\n"
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		b.Fatal(err)
	}
	s, err := service.Open(b.Context(), path, service.Options{Observer: &gateway.Eyes{}, Logger: silent()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	h, err := gateway.Check(s, gateway.CheckOptions{DenyStatus: 403})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://sluice/", nil)
	r.RemoteAddr = proxyPeer
	r.Header.Set("X-Original-Method", "GET")
	r.Header.Set("X-Original-URI", "/items?page=2")
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(blank{http.Header{}}, r)
	}
}
