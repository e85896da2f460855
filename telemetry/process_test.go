package telemetry_test

import (
	"math"
	"testing"

	"github.com/sluice-go/sluice/telemetry"
)

func TestInstances(t *testing.T) {
	for share, want := range map[float64]int64{1: 1, 0.5: 2, 1.0 / 3: 3, 1.0 / 7: 7, 1.0 / 49: 49, 0: 1, -1: 1, math.NaN(): 1} {
		if got := telemetry.Instances(share); got != want {
			t.Errorf("share %v: %d, want %d", share, got, want)
		}
	}
	if got := telemetry.Instances(1e-300); got != 1e9 {
		t.Errorf("a share of nearly nothing: %d", got)
	}
}
