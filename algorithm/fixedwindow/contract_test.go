package fixedwindow_test

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
)

var build = algorithmtest.Of(fixedwindow.New)

func TestInvariants(t *testing.T) { algorithmtest.Invariants(t, build, algorithmtest.Fixed()) }

func TestTwins(t *testing.T) { algorithmtest.Twins(t, 20_000, build) }
