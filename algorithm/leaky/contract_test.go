package leaky_test

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/leaky"
)

var build = algorithmtest.Of(leaky.New)

func TestInvariants(t *testing.T) { algorithmtest.Invariants(t, build, algorithmtest.Queue()) }

func TestTwins(t *testing.T) { algorithmtest.Twins(t, 20_000, build) }
