package outgoing

import (
	"context"
	"sync"
	"time"
)

// pause is the time until which the other side wants no calls. The zero pause is over. It is safe for concurrent use.
type pause struct {
	mu    sync.Mutex
	until time.Time
	calm  context.Context // ends when a longer pause begins; nil: nobody has asked since the last
	end   context.CancelFunc
}

// begin makes the pause last for d from now on. One that lasts longer already stands.
func (p *pause) begin(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := time.Now().Add(d)
	if d <= 0 || !until.After(p.until) {
		return
	}
	p.until = until
	if p.end != nil {
		p.end()
		p.calm, p.end = nil, nil
	}
}

// left returns how long the pause still lasts, and a context that ends when a longer one begins.
func (p *pause) left() (time.Duration, context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calm == nil {
		p.calm, p.end = context.WithCancel(context.Background())
	}
	return time.Until(p.until), p.calm
}
