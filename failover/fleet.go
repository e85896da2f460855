package failover

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	beatEvery = time.Second
	beatTime  = time.Second // of one call
	beatsKept = int(time.Minute / beatEvery)
)

// fleet is how many instances were seen. A process that restarts finds its predecessor's beat for a while, and one
// that stalls is not seen for a while: the most seen in a minute errs on the strict side. Only beats that got an answer
// count as time, so that neither an outage nor the first beats after one, when the others have not yet called in, make
// the fleet look small.
type fleet struct {
	most atomic.Int64
	last [beatsKept]int // the beater's own
	no   int
}

func (f *fleet) saw(n int) {
	f.last[f.no] = n
	f.no = (f.no + 1) % beatsKept
	most := 0
	for _, n := range f.last {
		most = max(most, n)
	}
	f.most.Store(int64(most))
}

// beat calls Heartbeat each second until Close.
func (b *Breaker) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithTimeout(b.ctx, beatTime)
		n, err := b.options.Heartbeat(ctx)
		cancel()
		if err == nil && n > 0 {
			b.fleet.saw(n)
		}
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			return
		}
	}
}
