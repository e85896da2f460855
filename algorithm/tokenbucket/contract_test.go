package tokenbucket_test

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

var build = algorithmtest.Of(tokenbucket.New)

func TestInvariants(t *testing.T) { algorithmtest.Invariants(t, build, algorithmtest.Bucket()) }

func TestTwins(t *testing.T) { algorithmtest.Twins(t, 20_000, build) }
