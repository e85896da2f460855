package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress tells on a stream how far a long run is: a line that is rewritten on a terminal, else a line for each part.
type progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time
	start    time.Time
	total    time.Duration // of all parts, as planned
	did      time.Duration // of the parts that are done, as planned
	lately   time.Time     // when the last of them was done
	part     string
}

func newProgress(out io.Writer, total time.Duration) *progress {
	p := &progress{out: out, now: time.Now, start: time.Now(), total: total}
	if f, ok := out.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			p.terminal = info.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

// done says that a part is done, which was planned to take so long.
func (p *progress) done(planned time.Duration) {
	p.did += planned
	p.lately = p.now()
}

// left is about the time until the end: as planned, and slower by as much as the parts so far were.
func (p *progress) left() time.Duration {
	left := max(p.total-p.did, 0)
	since := p.now().Sub(p.start)
	if p.did > 0 {
		left = time.Duration(float64(left) * float64(p.lately.Sub(p.start)) / float64(p.did))
		since = p.now().Sub(p.lately)
	}
	return max(left-since, 0).Round(time.Second)
}

// step says what is measured now: a part of the run, and what of it.
func (p *progress) step(part, what string) {
	took := p.now().Sub(p.start).Round(time.Second)
	switch {
	case p.terminal:
		fmt.Fprintf(p.out, "\r\033[K%v, about %v left: %s, %s", took, p.left(), part, what)
	case part != p.part:
		fmt.Fprintf(p.out, "%v, about %v left: %s\n", took, p.left(), part)
	}
	p.part = part
}

// clear ends the line.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
}
