package local_test

import (
	"testing"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

// inexact are the cases that buckets fail by what they are.
var inexact = map[string]string{
	"EditedRate":                       "a window of another period starts afresh; a bucket knows of no windows",
	"PollingDoesNotDelay":              "a sliding window regains by steps of its past, a bucket steadily",
	"WindowEdges":                      "a bucket regains steadily, and nothing starts anew at an edge",
	"KeysHaveOneGrid":                  "each bucket regains from its own charges",
	"EndedWindowGivesNothingBack":      "what a new window would hold is not there at once; TestBucketsEndedWindow holds the rule itself",
	"SmallerLimitClampsTheVerdictOnly": "a bucket keeps what is left, not what was spent, beyond a smaller limit",
	"RetryAfterInRealTime":             "needs a clock that runs; TestBucketsRetryAfter",
}

// With the whole share buckets are a store like any other, but for windows.
func TestBucketsConformance(t *testing.T) {
	clock := new(storetest.Clock)
	c := storetest.Config{
		New:     func(t *testing.T) sluice.Store { return local.NewBuckets(local.BucketsOptions{Clock: clock.Now}) },
		Clock:   clock,
		Source:  sluice.Local,
		Batcher: true,
		Atomic:  true,
	}
	run := 0
	for _, one := range storetest.Cases() {
		if inexact[one.Name] != "" {
			continue
		}
		run++
		t.Run(one.Name, func(t *testing.T) {
			if err := one.Check(t, c); err != nil {
				t.Error(err)
			}
		})
	}
	if all := len(storetest.Cases()); run != all-len(inexact) {
		t.Errorf("%d of %d cases ran, want all but %d", run, all, len(inexact))
	}
}
