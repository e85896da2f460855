package lab

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
)

var precisionRows = []string{"integers", "float", "tostring", "concatenated", "cjson", "whole_tokens"}

// On a real Redis all ways but integers admit something else than the limit.
func TestPrecision(t *testing.T) {
	for seed := range uint64(3) {
		r, err := Precision(t.Context(), PrecisionParams{Requests: 2000, Seed: seed, Server: realServer})
		if err != nil {
			t.Fatal(err)
		}
		formed(t, r, "precision", precisionRows...)
		exact := r.Row("integers")
		if exact.Number("polite_admitted") != 2000 || exact.Number("polite_exact") != 2000 ||
			exact.Number("eager_admitted") != exact.Number("eager_exact") || exact.Number("clock_error_us") != 0 {
			t.Errorf("seed %d: integers: %+v: want what is exact", seed, exact)
		}
		if float := r.Row("float"); float.Number("polite_admitted") >= 2000 || float.Number("clock_error_us") > 1 {
			t.Errorf("seed %d: float: %+v: want a polite client refused", seed, float)
		}
		for _, name := range []string{"tostring", "concatenated", "cjson"} {
			row := r.Row(name)
			if row.Number("polite_admitted") > 1800 || row.Number("eager_admitted") < 1.05*row.Number("eager_exact") {
				t.Errorf("seed %d: %+v: want a polite client refused, and an eager one given more", seed, row)
			}
			if n := row.Number("clock_error_us"); n < 40 || n > 51 {
				t.Errorf("seed %d: %s: a clock error of %v µs, want 50 for 14 digits", seed, name, n)
			}
		}
		if row := r.Row("whole_tokens"); row.Number("eager_admitted") > row.Number("eager_exact")/4 {
			t.Errorf("seed %d: %+v: want an eager client starved", seed, row)
		}
	}
}

// miniredis prints all digits, and so hides the fault; the result says so.
func TestPrecisionOnMiniredis(t *testing.T) {
	r, err := Precision(t.Context(), PrecisionParams{Requests: 100, Server: miniServer})
	if err != nil {
		t.Fatal(err)
	}
	formed(t, r, "precision", precisionRows...)
	if row := r.Row("tostring"); row.Number("clock_error_us") != 0 || row.Number("polite_admitted") != 100 {
		t.Errorf("%+v: want no fault to be seen", row)
	}
	if r.Row("integers").Number("eager_error_percent") != 0 {
		t.Errorf("%+v", r.Row("integers"))
	}
}

// The polite client spends the burst and then comes at the very times at which the next token is there.
func TestPrecisionPolite(t *testing.T) {
	p := PrecisionParams{Limit: sluice.Limit{Count: 4, Period: time.Second, Burst: 2}, Requests: 5}
	first := p.polite()[0]
	for i, want := range []int64{0, 0, 250_000, 500_000, 750_000} {
		if got := p.polite()[i] - first; got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
}

func TestPrecisionEndsWithItsContext(t *testing.T) {
	ends(t, func(ctx context.Context) (Result, error) {
		return Precision(ctx, PrecisionParams{Requests: 1_000_000, Server: miniServer})
	})
}

func TestPrecisionCheck(t *testing.T) {
	refused(t, map[string]func(*PrecisionParams){
		"Count -1":         func(p *PrecisionParams) { p.Limit.Count = -1 },
		"Burst -1":         func(p *PrecisionParams) { p.Limit = sluice.Limit{Count: 1, Period: time.Second, Burst: -1} },
		"whole number":     func(p *PrecisionParams) { p.Limit = sluice.Limit{Count: 3, Period: time.Second} },
		"Demand -1":        func(p *PrecisionParams) { p.Demand = -1 },
		"Requests 1000001": func(p *PrecisionParams) { p.Requests = 1_000_001 },
		"the last comes":   func(p *PrecisionParams) { p.Limit = sluice.Limit{Count: 1, Period: 30 * 24 * time.Hour} },
	})
}
