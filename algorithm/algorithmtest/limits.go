package algorithmtest

import (
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// drawLimit chooses a limit that the constructor accepts: small and large, odd and round, at times the largest legal.
func drawLimit(src source, build New) (algorithm.Limit, algorithm.Strategy) {
	l := algorithm.Limit{Count: drawCount(src), Period: drawPeriod(src)}
	if hasBurst(build) {
		l.Burst = oneOf(src, 1, l.Count, 1+src.below(20), 1+src.below(1<<20), 1+spread(src, 51))
	}
	if src.below(8) == 0 {
		l = largest(build, l)
	}
	return fit(build, l)
}

// drawEdit chooses what an operator may make of a limit: another count, another burst, rarely another period.
func drawEdit(src source, build New, l algorithm.Limit) (algorithm.Limit, algorithm.Strategy) {
	switch src.below(6) {
	case 0:
		return drawLimit(src, build)
	case 1:
		l.Period = drawPeriod(src)
	case 2:
		l.Count = l.Count*2 + 1
	case 3:
		l.Count = max(1, l.Count/10)
	default:
		l.Count = drawCount(src)
	}
	if l.Burst != 0 {
		l.Burst = oneOf(src, l.Burst, max(1, l.Burst/10), l.Burst*2, l.Count)
	}
	return fit(build, l)
}

func drawCount(src source) int64 {
	switch src.below(4) {
	case 0:
		return 1 + src.below(10)
	case 1:
		return oneOf[int64](src, 17, 60, 600, 1001, 65535, 700_000, 999_983, 1_000_000, 1_000_000_000)
	case 2:
		return 1 + src.below(1<<20)
	}
	return 1 + spread(src, 51)
}

func drawPeriod(src source) time.Duration {
	const day = 24 * time.Hour
	switch src.below(4) {
	case 0:
		return oneOf(src, time.Second, time.Minute, time.Hour, day)
	case 1:
		return oneOf(src, 3*time.Second, 7*time.Second, 10*time.Second, 13*time.Hour, 30*day, 365*day)
	case 2:
		return oneOf(src, time.Microsecond, 3*time.Microsecond, time.Millisecond, 500*time.Millisecond,
			algorithm.MaxPeriod, algorithm.MaxPeriod/2)
	}
	return time.Duration(1+spread(src, 50)) * time.Microsecond
}

// hasBurst tells algorithms that require a burst from windows, which have none of their own.
func hasBurst(build New) bool {
	_, err := build(algorithm.Limit{Count: 1, Period: time.Second})
	return err != nil
}

// fit shrinks a limit until the constructor accepts it.
func fit(build New, l algorithm.Limit) (algorithm.Limit, algorithm.Strategy) {
	for {
		st, err := build(l)
		switch {
		case err == nil:
			return l, st
		case l.Count >= algorithm.Bound:
			l.Count = algorithm.Bound - 1
		case l.Burst > 1:
			l.Burst /= 2
		case l.Count > 1 && l.Burst == 0:
			l.Count /= 2
		case l.Period > time.Microsecond:
			l.Period = max(time.Microsecond, (l.Period / 2).Truncate(time.Microsecond))
		default:
			panic("algorithmtest: the constructor refuses " + l.String() + ": " + err.Error())
		}
	}
}

// largest raises the burst, or a window's count, as far as the constructor accepts it.
func largest(build New, l algorithm.Limit) algorithm.Limit {
	size := &l.Count
	if hasBurst(build) {
		size = &l.Burst
	}
	*size = 0
	for step := int64(1) << 51; step > 0; step /= 2 {
		*size += step
		if _, err := build(l); err != nil {
			*size -= step
		}
	}
	*size = max(*size, 1)
	return l
}
