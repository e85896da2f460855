package tokenbucket_test

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm/algorithmtest"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

var build = algorithmtest.Of(tokenbucket.New)

func TestVectors(t *testing.T) { algorithmtest.Vectors(t, "testdata/*.txt", build) }

func TestInvariants(t *testing.T) { algorithmtest.Invariants(t, build, algorithmtest.Bucket()) }

func TestTwins(t *testing.T) { algorithmtest.Twins(t, 20_000, build) }

func FuzzTwins(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x05\x00\x01\x00\x00\x03\x02\x01\x01\x07\x00\x02\x01\x00\x05\x03\x01"))
	f.Add([]byte("one limit, then another, and a clock that steps back; what was charged is given back, and more is owed"))
	f.Add([]byte("\x03\x17\x02\xff\x01\x80\x04\x20\x05\x40\x06\x60\x07\x81\x08\xa2\x09\xc3\x0a\xe4\x0b\xf5\x00\x06\x01\x09\x02\x08\x03\x07\x04\x06\x05\x05"))
	algorithmtest.FuzzTwins(f, build)
}
