package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// tell tells a line of progress, if anybody listens.
func tell(progress func(string), format string, args ...any) {
	if progress != nil {
		progress(fmt.Sprintf(format, args...))
	}
}

// pace says when another line of progress is due.
type pace struct{ last time.Time }

func (p *pace) due() bool {
	now := time.Now()
	if p.last.IsZero() {
		p.last = now
	}
	if now.Sub(p.last) < progressTime {
		return false
	}
	p.last = now
	return true
}

// await waits until work that obeys ctx has ended, and tells of it now and then. The error is ctx's, or the server's if it
// has ended.
func await(ctx context.Context, work *sync.WaitGroup, s *server, tell func()) error {
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	tick := time.NewTicker(progressTime)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return errors.Join(context.Cause(ctx), s.check())
		case <-tick.C:
			tell()
		}
	}
}

// ended is err, or why ctx has ended if it has: clients tell of that in words of their own.
func ended(ctx context.Context, err error) error {
	switch deadline, ok := ctx.Deadline(); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ok && !time.Now().Before(deadline): // its timer is about to fire
		return context.DeadlineExceeded
	}
	return err
}
