package lab

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Schedule says when Redis is away in a run: once for long, and then, flapping, again and again.
type Schedule struct {
	Duration time.Duration // of the run
	AwayFrom time.Duration // since the run's start: the long outage begins
	AwayTo   time.Duration // and ends; AwayFrom: there is none
	FlapFor  time.Duration // how long Redis flaps after AwayTo, beginning with a time in which it is there; 0: not at all
	Flap     time.Duration // each time of being there, and of being away, in FlapFor
}

// DefaultSchedule is a run of 14 s, in which Redis is away for 6 s and then flaps each second for 4 s.
func DefaultSchedule() Schedule {
	return Schedule{Duration: 14 * time.Second, AwayFrom: 2 * time.Second, AwayTo: 8 * time.Second, FlapFor: 4 * time.Second, Flap: time.Second}
}

// shortest is the shortest time in which Redis can be taken away and be back.
const shortest = 10 * time.Millisecond

func (s Schedule) check() error {
	switch {
	case s.Duration <= 0 || s.Duration > mostDuration:
		return fmt.Errorf("lab: outage: Duration %v: want above 0 and at most %v", s.Duration, mostDuration)
	case s.AwayFrom < 0 || s.AwayTo < s.AwayFrom || s.AwayTo > s.Duration:
		return fmt.Errorf("lab: outage: away %v to %v: want 0 <= from <= to <= %v, the duration", s.AwayFrom, s.AwayTo, s.Duration)
	case s.FlapFor < 0:
		return fmt.Errorf("lab: outage: FlapFor %v: want at least 0", s.FlapFor)
	case s.FlapFor > 0 && s.Flap < shortest:
		return fmt.Errorf("lab: outage: Flap %v: want at least %v", s.Flap, shortest)
	}
	return nil
}

// Span is a time in a run, from its start.
type Span struct{ From, To time.Duration }

// Outages returns when Redis is away, in order.
func (s Schedule) Outages() []Span {
	var out []Span
	if s.AwayTo > s.AwayFrom {
		out = append(out, Span{s.AwayFrom, s.AwayTo})
	}
	end := min(s.AwayTo+s.FlapFor, s.Duration)
	for from := s.AwayTo + s.Flap; from < end; from += 2 * s.Flap {
		out = append(out, Span{from, min(from+s.Flap, end)})
	}
	return out
}

// away returns how much of the second that begins at n seconds Redis is away, from 0 to 1.
func (s Schedule) away(n int) float64 {
	from := time.Duration(n) * time.Second
	var sum time.Duration
	for _, o := range s.Outages() {
		sum += max(0, min(o.To, from+time.Second)-max(o.From, from))
	}
	return sum.Seconds()
}

// drive takes the way to Redis away and gives it back on time, until ctx ends.
func (s Schedule) drive(ctx context.Context, start time.Time, how string, way *link) {
	defer way.restore()
	for _, o := range s.Outages() {
		if !until(ctx, start.Add(o.From)) {
			return
		}
		if how == "hang" {
			way.hang()
		} else {
			way.refuse()
		}
		if !until(ctx, start.Add(o.To)) {
			return
		}
		way.restore()
	}
}

// until sleeps; it is false if ctx has ended.
func until(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// list is "2s-8s, 9s-10s".
func list(spans []Span) string {
	if len(spans) == 0 {
		return "never"
	}
	texts := make([]string, len(spans))
	for i, s := range spans {
		texts[i] = fmt.Sprintf("%v-%v", s.From, s.To)
	}
	return strings.Join(texts, ", ")
}
