package redistest

import (
	"io"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP and breaks it on demand. Its switches act on open and on new connections, together, until they
// are set back. What TCP can't do, it does not do: a connection that once lost bytes stays silent until it is closed,
// also after the switch is off.
type Proxy struct {
	Addr string // host:port on loopback; it stays the same over Refuse

	relay relay
	tb    testing.TB

	mu          sync.Mutex
	blackHole   bool
	dropReplies bool
	delay       time.Duration
	cut         int // bytes of replies that still pass on a connection; below 0: all
	cuts        int // calls of CutReplies
}

// StartProxy forwards connections to addr, and closes when t ends.
func StartProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	p := &Proxy{tb: t, cut: -1, relay: relay{upstream: addr}}
	p.relay.serve = p.serve
	if err := p.relay.open(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	p.Addr = p.relay.addr
	t.Cleanup(p.Close)
	return p
}

// BlackHole accepts connections and requests, and neither forwards nor answers them.
func (p *Proxy) BlackHole(on bool) { p.set(func() { p.blackHole = on }) }

// DropReplies forwards requests, so that they are executed, and swallows the replies.
func (p *Proxy) DropReplies(on bool) { p.set(func() { p.dropReplies = on }) }

// Delay holds each piece of a reply for d; 0 does not.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// CutReplies lets n more bytes of replies pass on each connection and then closes it, where there are more; n below 0
// ends that.
func (p *Proxy) CutReplies(n int) { p.set(func() { p.cut, p.cuts = n, p.cuts+1 }) }

// Reset breaks all connections with a RST.
func (p *Proxy) Reset() { p.relay.breakAll(true) }

// Refuse has new connections refused, as a port does that nobody listens on. Those that are open stay: see Reset.
func (p *Proxy) Refuse(on bool) {
	p.tb.Helper()
	if on {
		p.relay.refuse()
	} else if err := p.relay.open(); err != nil {
		p.tb.Fatalf("redistest: %v", err)
	}
}

// Accepted returns how many connections were made so far.
func (p *Proxy) Accepted() int64 {
	p.relay.mu.Lock()
	defer p.relay.mu.Unlock()
	return p.relay.accepted
}

// Open returns how many connections are open.
func (p *Proxy) Open() int {
	p.relay.mu.Lock()
	defer p.relay.mu.Unlock()
	return len(p.relay.links)
}

// Close breaks all connections and leaves no goroutine. It may be called twice.
func (p *Proxy) Close() { p.relay.shut() }

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *Proxy) serve(l *link) {
	p.mu.Lock()
	silent := p.blackHole
	p.mu.Unlock()
	if silent { // a black hole accepts also where nothing is behind it
		_, _ = io.Copy(io.Discard, l.client)
		return
	}
	if !p.relay.dial(l) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		defer l.close(false)
		p.requests(l)
	})
	both.Go(func() {
		defer l.close(false)
		p.replies(l)
	})
	both.Wait()
}

func (p *Proxy) requests(l *link) {
	buf, lost := make([]byte, 32<<10), false
	for {
		n, err := l.client.Read(buf)
		p.mu.Lock()
		lost = lost || p.blackHole
		p.mu.Unlock()
		if !lost && n > 0 {
			if _, err := l.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) replies(l *link) {
	buf, lost := make([]byte, 32<<10), false
	passed, cuts := 0, 0 // bytes since the last call of CutReplies, and which call that was
	for {
		n, err := l.server.Read(buf)
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		if delay > 0 {
			t := time.NewTimer(delay)
			select {
			case <-t.C:
			case <-l.done:
				t.Stop()
				return
			}
		}

		p.mu.Lock()
		lost = lost || p.blackHole || p.dropReplies
		if cuts != p.cuts {
			passed, cuts = 0, p.cuts
		}
		last := p.cut >= 0 && n > p.cut-passed
		if last {
			n = p.cut - passed
		}
		p.mu.Unlock()

		if !lost && n > 0 {
			if _, err := l.client.Write(buf[:n]); err != nil {
				return
			}
			passed += n
		}
		if err != nil || last {
			return
		}
	}
}
