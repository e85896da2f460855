package otel_test

import (
	"context"
	"fmt"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry/otel"
)

// Around a store, on a meter of the program's own provider.
func Example() {
	ctx, reader := context.Background(), sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	metrics, err := otel.New(provider.Meter("example"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := sluice.Limit{Count: 1, Period: time.Hour, Burst: 10}
	store := sluice.Observe(local.New(local.Options{}), metrics)
	api := sluice.New(store, sluice.Must(tokenbucket.New(limit)), "api")
	for range 10 {
		_, _ = api.Allow(ctx, "203.0.113.7")
	}

	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			outcome, _ := sum.DataPoints[0].Attributes.Value("sluice.outcome")
			fmt.Println(m.Name, outcome.AsString(), sum.DataPoints[0].Value)
		}
	}
	// Output: sluice.decisions allowed 10
}
