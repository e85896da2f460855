package algorithmtest

import (
	"testing"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// The same seed gives the same steps, each within what a store may be asked.
func TestHistories(t *testing.T) {
	build := Of(tokenbucket.New)
	a, b := Histories(7, 5000, build), Histories(7, 5000, build)
	if len(a) != 5000 || a[0].Set == nil {
		t.Fatalf("%d steps, the first sets %v", len(a), a[0].Set)
	}
	edits := 0
	for i, s := range a {
		if s.Now < 0 || s.Now >= algorithm.Bound {
			t.Errorf("step %d: now is %d", i, s.Now)
		}
		if s.Now != b[i].Now || s.N != b[i].N || s.At != b[i].At || s.Strategy.Limit() != b[i].Strategy.Limit() {
			t.Fatalf("step %d differs for the same seed", i)
		}
		if i > 0 && s.Set == nil && s.Strategy.Limit() != a[i-1].Strategy.Limit() {
			edits++
		}
	}
	if edits < 100 {
		t.Errorf("%d edits in 5000 steps: want more", edits)
	}
}
