package load

import "testing"

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 2, 100}, 3},
	} {
		if got := Median(tt.values); got != tt.want {
			t.Errorf("Median(%v) is %v, want %v", tt.values, got, tt.want)
		}
	}
}

// A ratio is of pairs: a round in which the machine was slow for both changes nothing.
func TestRatio(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b []float64
		want float64
	}{
		{"none", nil, nil, 0},
		{"slow rounds strike both", []float64{10, 1, 100}, []float64{5, 0.5, 50}, 2},
		{"not the ratio of medians", []float64{1, 2, 9}, []float64{1, 8, 3}, 1},
		{"a zero divisor is left out", []float64{1, 6}, []float64{0, 2}, 3},
		{"a missing round is left out", []float64{4, 8}, []float64{2}, 2},
	} {
		if got := Ratio(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
