package slidingwindow_test

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
)

var build = algorithmtest.Of(slidingwindow.New)

func TestInvariants(t *testing.T) { algorithmtest.Invariants(t, build, algorithmtest.Sliding()) }

func TestTwins(t *testing.T) { algorithmtest.Twins(t, 20_000, build) }
