package load

import "slices"

// Median returns the middle of values, of an even number the mean of the middle two, of none 0.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Ratio returns the median of a[i]/b[i]. Pairs are of one round, so that a slow moment of the machine strikes both;
// those with a zero divisor are left out.
func Ratio(a, b []float64) float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return Median(r)
}
