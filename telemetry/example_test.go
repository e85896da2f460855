package telemetry_test

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/telemetry"
)

// A line at each subject's first denial in a minute, however often it is denied.
func ExampleDenialLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	denials := telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: logger})
	store := sluice.Observe(local.New(local.Options{}), denials)
	limit := sluice.Limit{Count: 1, Period: time.Hour, Burst: 1}
	login := sluice.New(store, sluice.Must(tokenbucket.New(limit)), "login")
	for range 100 {
		_, _ = login.AllowN(context.Background(), "203.0.113.7", 2) // more than the burst
	}
	// Output: level=INFO msg="sluice: denied" rule=login limit="" algorithm=token_bucket subject=fec52565aa0cf18f n=2 source=local retry_after=never
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
