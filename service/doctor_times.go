package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
)

// time tells whether scripts may read the server's clock, and how far this machine's is from it.
func (d *doctor) time(ctx context.Context) {
	const script = "return redis.call('TIME')"
	key := d.store.KeyOf(d.ask(d.strategies()[0], "doctor"))
	var offset time.Duration
	quickest := time.Duration(-1)
	for range 5 { // the quickest tells best
		sent := time.Now()
		reply, err := d.client.Eval(ctx, script, []string{key}).Slice()
		took := time.Since(sent)
		if err == nil && len(reply) != 2 {
			err = fmt.Errorf("TIME replies %v", reply)
		}
		if err != nil {
			d.fail("time", "scripts can't read the server's clock: "+err.Error(), "give the user +time; where the service forbids TIME in scripts, decide by Options.Clock, in code")
			return
		}
		if quickest < 0 || took < quickest {
			quickest = took
			s, µs := number(fmt.Sprint(reply[0])), number(fmt.Sprint(reply[1]))
			offset = time.Unix(s, µs*1000).Sub(sent.Add(took / 2))
		}
	}
	d.ok("time", "scripts read the server's clock")
	const apart = time.Second
	found := "the server's is " + ahead(offset)
	if offset.Abs() > apart {
		d.warn("clock", found, "decisions are made by the server's clock alone, and still right; but windows begin by it, and overrides end by this machine's: keep both in step, and slew rather than step them")
		return
	}
	d.ok("clock", "%s", found)
}

// ahead says how far the server's clock is from this machine's.
func ahead(d time.Duration) string {
	switch d = d.Round(time.Millisecond); {
	case d < 0:
		return fmt.Sprintf("%v behind this machine's", -d)
	case d > 0:
		return fmt.Sprintf("%v ahead of this machine's", d)
	}
	return "within 1ms of this machine's"
}

// enough is how long one check measures.
const enough = time.Second

// roundTrip tells how long decisions take from here, against the timeout that they have.
func (d *doctor) roundTrip(ctx context.Context) {
	const most = 50
	ask := d.ask(d.strategies()[0], subject())
	ask.Mode = sluice.Peek
	var took []time.Duration
	for begin := time.Now(); len(took) < most && time.Since(begin) < enough; {
		start := time.Now()
		if _, err := d.store.Take(ctx, ask); err != nil {
			d.fail("rtt", err.Error(), "see the lines above")
			return
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	found := fmt.Sprintf("median %v, worst of %d %v; store.timeout %v", short(median), len(took), short(worst), d.timeout)
	switch {
	case median > d.timeout:
		d.fail("rtt", found, "decisions end by the timeout: raise store.timeout, or move Redis nearer")
	case worst > d.timeout, median > d.timeout/4:
		d.warn("rtt", found, "some decisions will end by the timeout, and on_outage decides: raise store.timeout, or move Redis nearer")
	default:
		d.ok("rtt", "%s", found)
	}
}

// short is a duration in three digits or so.
func short(d time.Duration) time.Duration {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}

// scriptTime tells how long the server works on a decision.
func (d *doctor) scriptTime(ctx context.Context) {
	if d.info == nil {
		d.warn("script", "time on the server not known: the user may not ask for INFO", noInfo)
		return
	}
	const most = 200
	ask := d.ask(d.strategies()[0], "doctor") // on the server that is asked
	calls, µs := d.spent(ctx)
	err, begin := error(nil), time.Now()
	for i := 0; i < most && err == nil && time.Since(begin) < enough; i++ {
		_, err = d.store.Take(ctx, ask)
	}
	callsNow, µsNow := d.spent(ctx)
	ask.Mode = sluice.Reset
	if _, reset := d.store.Take(ctx, ask); err == nil {
		err = reset
	}
	if err != nil {
		d.fail("script", err.Error(), "see the lines above")
		return
	}
	if callsNow <= calls {
		d.warn("script", "time on the server not known: INFO commandstats counts no EVALSHA", noInfo)
		return
	}
	each := float64(µsNow-µs) / float64(callsNow-calls)
	found := fmt.Sprintf("%.1f µs on the server for a script call, over %d calls", each, callsNow-calls)
	const slow = 100 // µs; on a quiet machine it is 5 to 10
	if each > slow {
		d.warn("script", found, "ten times what it should be: the server has too little CPU, or swaps, or runs others' long scripts")
		return
	}
	d.ok("script", "%s", found)
}

// spent is how often the server has run EVALSHA, and for how many µs.
func (d *doctor) spent(ctx context.Context) (calls, µs int64) {
	stats := d.askInfo(ctx, "commandstats")["cmdstat_evalsha"]
	for field := range strings.SplitSeq(stats, ",") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "calls":
			calls = number(value)
		case "usec":
			µs = number(value)
		}
	}
	return calls, µs
}
