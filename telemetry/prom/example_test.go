package prom_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/telemetry/prom"
)

// A program on a rule file, with /metrics.
func Example() {
	var running atomic.Pointer[service.Service] // the observer is there before the service
	metrics := prom.New(func() *policy.Rules {
		if s := running.Load(); s != nil {
			return s.Rules()
		}
		return nil
	})
	limits, err := service.Open(context.Background(), "../../examples/rules.yaml", service.Options{
		Observer: metrics, OnBreaker: metrics.BreakerChanged,
		Logger: slog.New(slog.DiscardHandler),
		Clock:  func() time.Time { return time.Unix(1_700_000_000, 0) }, // the example's: leave it out
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()
	running.Store(limits)

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics, prom.NewProcess(limits.Process()))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", limits.Middleware(http.NotFoundHandler()))

	for range 15 { // 10 pass
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/fixed", nil))
	}
	scrape := httptest.NewRecorder()
	mux.ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	body, _ := io.ReadAll(scrape.Result().Body)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "sluice_decisions_total") || strings.HasPrefix(line, "sluice_rules ") {
			fmt.Print(line)
		}
	}
	// Output:
	// sluice_decisions_total{algorithm="fixed_window",limit="fixed_window-ip",outcome="allowed",rule="fixed",source="local"} 10
	// sluice_decisions_total{algorithm="fixed_window",limit="fixed_window-ip",outcome="denied",rule="fixed",source="local"} 5
	// sluice_rules 4
}
