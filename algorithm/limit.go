package algorithm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxPeriod is the longest Period of a Limit: 2^50 µs, 35.7 years.
const MaxPeriod = (1 << 50) * time.Microsecond

// Limit is what a strategy promises: at most Count units a Period, at most Burst at one instant.
type Limit struct {
	Count  int64         // units per Period, at least 1
	Period time.Duration // a whole number of µs, at most 2^50 µs
	Burst  int64         // most units at one instant; windows: 0 or Count; token bucket and leaky require it
}

// String returns the limit as the rule file reads it, such as "100/10s", and the burst, if any, after it.
func (l Limit) String() string {
	p := l.Period.String()
	switch {
	case l.Period == 24*time.Hour:
		p = "day"
	case l.Period == time.Hour:
		p = "h"
	case l.Period == time.Minute:
		p = "min"
	case l.Period == time.Second:
		p = "s"
	}
	s := fmt.Sprintf("%d/%s", l.Count, p)
	if l.Burst != 0 {
		s += fmt.Sprintf(" burst %d", l.Burst)
	}
	return s
}

// Check reports the first field that no algorithm accepts: a Count below 1, a Period that is not a whole number of
// µs from 1 µs to 2^50 µs, or a negative Burst. Constructors of algorithms call it first, with their package's name.
func (l Limit) Check(who string) error {
	switch {
	case l.Count < 1:
		return fmt.Errorf("%s: Count %d: want at least 1", who, l.Count)
	case l.Count >= Bound:
		return fmt.Errorf("%s: Count %d: want at most %d", who, l.Count, int64(Bound)-1)
	case l.Period < time.Microsecond:
		return fmt.Errorf("%s: Period %v: want at least 1µs", who, l.Period)
	case l.Period%time.Microsecond != 0:
		return fmt.Errorf("%s: Period %v: want a whole number of µs", who, l.Period)
	case l.Period > MaxPeriod:
		return fmt.Errorf("%s: Period %v: want at most %v (2^50 µs)", who, l.Period, MaxPeriod)
	case l.Burst < 0:
		return fmt.Errorf("%s: Burst %d: want at least 0", who, l.Burst)
	}
	return nil
}

// CheckWindow is Check for the windows, whose Burst is 0 or Count: a window lets all of Count pass at one instant.
func (l Limit) CheckWindow(who string) error {
	if err := l.Check(who); err != nil {
		return err
	}
	if l.Burst != 0 && l.Burst != l.Count {
		return fmt.Errorf("%s: Burst %d: want 0 or Count %d, a window has no burst of its own", who, l.Burst, l.Count)
	}
	return nil
}

// units are the names of a period in ParseLimit.
var units = []struct {
	name string
	d    time.Duration
}{
	{"µs", time.Microsecond}, {"us", time.Microsecond}, {"ms", time.Millisecond},
	{"sec", time.Second}, {"s", time.Second},
	{"min", time.Minute}, {"m", time.Minute},
	{"hour", time.Hour}, {"h", time.Hour},
	{"day", 24 * time.Hour}, {"d", 24 * time.Hour},
}

// ParseLimit reads a count and a period, such as "100/10s", "5/min", "1000/h", "1/30d" or "3/500ms": what the rule
// file reads. A period is a whole number, 1 if left out, of µs (us), ms, s (sec), m (min), h (hour) or d (day);
// or a sum of those that [time.ParseDuration] reads, such as "1h30m". Burst is left 0.
// The error names the text and what is wrong with it.
func ParseLimit(s string) (Limit, error) {
	count, period, ok := strings.Cut(s, "/")
	if !ok {
		return Limit{}, fmt.Errorf(`algorithm: limit %q: want count/period, such as "100/10s"`, s)
	}
	n, err := wholeNumber(count)
	if err != nil {
		return Limit{}, fmt.Errorf("algorithm: limit %q: count %q: %w", s, strings.TrimSpace(count), err)
	}
	p, err := parsePeriod(strings.TrimSpace(period))
	if err != nil {
		return Limit{}, fmt.Errorf("algorithm: limit %q: period %q: %w", s, strings.TrimSpace(period), err)
	}
	l := Limit{Count: n, Period: p}
	if err := l.Check("algorithm"); err != nil {
		return Limit{}, fmt.Errorf("algorithm: limit %q: %s", s, strings.TrimPrefix(err.Error(), "algorithm: "))
	}
	return l, nil
}

func parsePeriod(s string) (time.Duration, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok || strings.Trim(digits, "0123456789 ") != "" {
			continue
		}
		if digits == "" {
			return u.d, nil
		}
		n, err := wholeNumber(digits)
		if err != nil {
			return 0, err
		}
		if n > int64(math.MaxInt64/u.d) {
			return 0, fmt.Errorf("want at most %v", MaxPeriod)
		}
		return time.Duration(n) * u.d, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("want a number of µs, ms, s, min, h or d")
	}
	return d, nil
}

// wholeNumber reads decimal digits alone: no sign, no fraction, no exponent, no NaN.
func wholeNumber(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("want a whole number")
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("want at most %d", int64(Bound)-1)
	}
	return n, nil
}
