package redistest

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// relay accepts connections on a loopback address and has each served, with a connection upstream beside it.
type relay struct {
	addr     string
	upstream string
	serve    func(*link) // on a goroutine of its own; returns once the link is closed

	wg       sync.WaitGroup
	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	links    map[*link]struct{}
	accepted int64
	closed   bool
}

// link is a client's connection and its partner upstream.
type link struct {
	client net.Conn
	server net.Conn // nil where serve did not dial
	done   chan struct{}
	once   sync.Once
}

// close breaks both connections. With reset the peers get a RST instead of the stream's end.
func (l *link) close(reset bool) {
	l.once.Do(func() {
		close(l.done)
		for _, c := range []net.Conn{l.client, l.server} {
			if c == nil {
				continue
			}
			if tcp, ok := c.(*net.TCPConn); ok && reset {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		}
	})
}

// open listens on a free port, or again on the one that refuse(true) gave up.
func (r *relay) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil || r.closed {
		return nil
	}
	addr := r.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	for deadline := time.Now().Add(startTime); err != nil && time.Now().Before(deadline); {
		time.Sleep(pollTime) // another process holds the port for a moment
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	r.addr, r.listener = l.Addr().String(), l
	r.wg.Go(func() { r.accept(l) })
	return nil
}

// refuse stops listening: new connections are refused by the kernel, those that are open stay.
func (r *relay) refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
}

func (r *relay) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		l := &link{client: c, done: make(chan struct{})}
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			l.close(false)
			return
		}
		if r.links == nil {
			r.links = map[*link]struct{}{}
		}
		r.links[l] = struct{}{}
		r.accepted++
		r.mu.Unlock()
		r.wg.Go(func() {
			r.serve(l)
			l.close(false)
			r.mu.Lock()
			delete(r.links, l)
			r.mu.Unlock()
		})
	}
}

// dial gives the link its partner upstream. It is false where that can't be reached, or the link was closed meanwhile.
func (r *relay) dial(l *link) bool {
	c, err := net.DialTimeout("tcp", r.upstream, time.Second)
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-l.done:
		_ = c.Close()
		return false
	default:
		l.server = c
		return true
	}
}

// breakAll closes every connection.
func (r *relay) breakAll(reset bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.close(reset)
	}
}

// shut closes everything and waits for all goroutines.
func (r *relay) shut() {
	r.refuse()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.breakAll(false)
	r.wg.Wait()
}
