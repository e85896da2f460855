package algorithmtest

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

func TestVectorGrammar(t *testing.T) {
	for text, want := range map[string]string{
		"at=0":                       "want at= with",
		"n=1":                        "want at= with",
		"at=0 n=1 n=2":               "twice",
		"at=0 n=1 upto=2":            "twice",
		"at=0 adjust=1":              "want at= with",
		"at=0 n=1 was=0":             "want at= with",
		"at=5 n=1":                   "missing unit",
		"at=1ns n=1":                 "whole µs",
		"at=0 n=x":                   "invalid syntax",
		"at=0 n=1 hits=2":            "want at=, was=",
		"at=0 n=9223372036854775808": "out of range",
	} {
		if c, err := parseCall(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v: want %q", text, c, err, want)
		}
	}
	if c, err := parseCall("at=-1h adjust=-2 was=+1.5s"); err != nil || c != (call{at: -3_600_000_000, n: -2, was: 1_500_000, adjust: true}) {
		t.Errorf("adjust: %+v, %v", c, err)
	}
	if l, err := parseLimit("10/5s burst 7"); err != nil || l != (algorithm.Limit{Count: 10, Period: 5 * time.Second, Burst: 7}) {
		t.Errorf("limit: %+v, %v", l, err)
	}
}
