//go:build js && wasm

package main

import (
	"encoding/binary"
	"math"
	"syscall/js"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/lab/play/engine"
)

// frame(bytes) returns what there is to show now. Of a sim, it fills the bytes with the timelines' columns: for each
// lane engine.Bins columns of seven float32: when the column began (s; below 0: there is none), allowed, delayed,
// denied, acting, level (NaN: none), and 1 where Redis was away.
func (p *page) frame(args []js.Value) any {
	switch {
	case p.sim != nil:
		if len(args) > 0 && args[0].Type() == js.TypeObject {
			p.columns(args[0])
		}
		return p.simFrame()
	case p.trace != nil:
		return p.traceFrame()
	}
	return nil
}

const columnSize = 7 * 4 // bytes

func (p *page) columns(to js.Value) {
	lanes := p.sim.Lanes()
	p.bytes = p.bytes[:0]
	for i := range lanes {
		start := len(p.bytes)
		p.sim.Timeline(i, func(began int64, c engine.Bin) {
			away := float32(0)
			if c.Away {
				away = 1
			}
			for _, v := range [...]float32{
				float32(float64(began) / 1e6), float32(c.Allowed), float32(c.Delayed), float32(c.Denied), float32(c.Acting), c.Level, away,
			} {
				p.bytes = binary.LittleEndian.AppendUint32(p.bytes, math.Float32bits(v))
			}
		})
		for len(p.bytes) < start+engine.Bins*columnSize {
			p.bytes = binary.LittleEndian.AppendUint32(p.bytes, math.Float32bits(-1))
		}
	}
	js.CopyBytesToJS(to, p.bytes)
}

func (p *page) simFrame() map[string]any {
	var lanes []any
	for _, l := range p.sim.Lanes() {
		f := l.Figures
		v := map[string]any{
			"name": l.Name, "algorithm": l.Algorithm, "level": number(l.Level),
			"count": l.Limit.Count, "most": max(l.Limit.Burst, 0),
			"asked": f.Asked, "allowed": f.Allowed, "denied": f.Denied, "delayed": f.Delayed, "units": f.Units,
			"largest": f.Largest, "largestEnd": f.LargestEnd, "largestActing": f.LargestActing,
			"worstDelay": f.WorstDelay, "delaySum": f.DelaySum,
			"awayAsked": f.AwayAsked, "awayAllowed": f.AwayAllowed, "keys": f.Keys,
		}
		if l.Last != nil {
			v["last"] = record(l, *l.Last)
		}
		lanes = append(lanes, v)
	}
	return map[string]any{
		"origin": engine.Origin, "now": p.sim.Now(), "decided": p.sim.Decided(), "up": p.sim.Up(), "text": p.sim.Setup().String(), "lanes": lanes,
	}
}

// record is a decision with its state before and after, and its arithmetic.
func record(l engine.Lane, r engine.Record) map[string]any {
	d, e := r.Decision, l.Explain(r)
	return map[string]any{
		"at": r.At, "subject": r.Subject, "n": r.N, "before": words(r.Before), "after": words(r.After), "words": names(l.Words()),
		"away": r.Away, "instance": r.Instance, "expired": r.Expired,
		"allowed": d.Allowed, "limit": d.Limit, "remaining": d.Remaining, "retry": wait(d.RetryAfter),
		"reset": wait(d.ResetAfter), "delay": wait(d.Delay), "source": d.Source.String(),
		"kind": e.Kind, "held": e.Held, "freed": e.Freed, "spent": e.Now, "ago": e.Ago, "most": e.Most,
		"previous": e.Previous, "current": e.Current, "weight": e.Weight, "left": e.Left,
	}
}

func (p *page) traceFrame() map[string]any {
	var lanes []any
	for _, l := range p.trace.Lanes {
		f := l.Figures(p.now)
		lanes = append(lanes, map[string]any{
			"name": l.Name, "words": names(l.Words), "allowed": f.Allowed, "denied": f.Denied, "conflicts": f.Conflicts, "commands": f.Commands,
			"median": f.Median, "p99": f.P99, "worst": f.Worst,
		})
	}
	return map[string]any{"origin": engine.Origin, "now": p.now, "end": p.trace.End, "lanes": lanes}
}

// trips() returns the trips of a trace: a list for each lane, in the order in which the server ran them.
func (p *page) trips([]js.Value) any {
	var lanes []any
	if p.trace == nil {
		return lanes
	}
	for _, l := range p.trace.Lanes {
		trips := make([]any, 0, len(l.Trips))
		for _, t := range l.Trips {
			trips = append(trips, map[string]any{
				"client": t.Client, "kind": t.Kind, "outcome": t.Outcome, "sent": t.Sent, "served": t.Served, "left": t.Left, "got": t.Got,
				"before": words(t.Before), "after": words(t.After),
			})
		}
		lanes = append(lanes, trips)
	}
	return lanes
}

func words(s algorithm.State) []any { return []any{s[0], s[1], s[2]} }

func names(words []string) []any {
	all := make([]any, len(words))
	for i, w := range words {
		all[i] = w
	}
	return all
}

func wait(d time.Duration) int64 {
	if d == algorithm.Never {
		return -1
	}
	return int64(d / time.Microsecond)
}

// number is f, or null where there is none.
func number(f float64) any {
	if math.IsNaN(f) {
		return nil
	}
	return f
}
