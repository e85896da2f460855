package lab

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var l latencies
	if got := l.quantile(0.99); got != 0 {
		t.Errorf("of none: %v", got)
	}
	for i := range 100 {
		l = append(l, time.Duration(100-i)*time.Millisecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := l.quantile(q); got != want {
			t.Errorf("%v: %v ms, want %v", q, got, want)
		}
	}
}

func TestWithoutZeros(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"24h": 24 * time.Hour, "1h30m": 90 * time.Minute, "1h0m1s": time.Hour + time.Second, "1m": time.Minute, "1m1s": 61 * time.Second,
		"10m": 10 * time.Minute, "10s": 10 * time.Second, "1.5s": 1500 * time.Millisecond, "0s": 0, "100ms": 100 * time.Millisecond,
	} {
		if got := withoutZeros(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
