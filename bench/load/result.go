package load

// Metric picks one figure.
type Metric func(Figures) float64

// Metrics by name.
func Rate(f Figures) float64      { return f.Rate }
func P50(f Figures) float64       { return f.P50 }
func P99(f Figures) float64       { return f.P99 }
func RedisCPU(f Figures) float64  { return f.RedisCPU }
func RedisBusy(f Figures) float64 { return f.RedisBusy }

// Of returns a metric of a contender in each round.
func (r Result) Of(name string, m Metric) []float64 {
	var v []float64
	for _, f := range r.Rounds[name] {
		v = append(v, m(f))
	}
	return v
}

// Median is the median of a metric over rounds.
func (r Result) Median(name string, m Metric) float64 { return Median(r.Of(name, m)) }

// Ratio is the median of ours over theirs, round by round.
func (r Result) Ratio(ours, theirs string, m Metric) float64 {
	return Ratio(r.Of(ours, m), r.Of(theirs, m))
}

// Medians are a contender's figures, each the median over rounds.
func (r Result) Medians(name string) Figures {
	med := func(m Metric) float64 { return r.Median(name, m) }
	f := Figures{
		Rate: med(Rate), P50: med(P50), P99: med(P99),
		Allocs:      med(func(f Figures) float64 { return f.Allocs }),
		Bytes:       med(func(f Figures) float64 { return f.Bytes }),
		ClientCPU:   med(func(f Figures) float64 { return f.ClientCPU }),
		RedisCPU:    med(RedisCPU),
		RedisBusy:   med(RedisBusy),
		Scripts:     med(func(f Figures) float64 { return f.Scripts }),
		UsecPerCall: med(func(f Figures) float64 { return f.UsecPerCall }),
		BytesIn:     med(func(f Figures) float64 { return f.BytesIn }),
		BytesOut:    med(func(f Figures) float64 { return f.BytesOut }),
		Allowed:     med(func(f Figures) float64 { return f.Allowed }),
	}
	for _, round := range r.Rounds[name] { // errors are too rare for a median
		f.Errors += round.Errors / float64(len(r.Rounds[name]))
		if f.FirstErrorText == "" {
			f.FirstErrorText = round.FirstErrorText
		}
	}
	return f
}
