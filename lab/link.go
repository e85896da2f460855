package lab

import (
	"net"
	"sync"
	"time"
)

// link is the way to a server, on a loopback port, that can be taken away. It must be closed.
type link struct {
	network, target string
	listener        net.Listener
	closed          chan struct{}
	running         sync.WaitGroup

	mu       sync.Mutex
	refusing bool
	gate     chan struct{} // closed while bytes may pass
	conns    map[*net.TCPConn]struct{}
}

// dialTime is how long the server has to accept a connection.
const dialTime = time.Second

func newLink(network, target string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{
		network: network, target: target, listener: listener,
		closed: make(chan struct{}), gate: make(chan struct{}), conns: map[*net.TCPConn]struct{}{},
	}
	close(l.gate)
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// refuse resets every connection, and each new one with the first byte that comes, until restore. (Reset at once, it
// might look like a failure to connect, of which go-redis writes a line to standard error.)
func (l *link) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusing = true
	for c := range l.conns {
		reset(c)
	}
}

// hang keeps connections open and holds what is sent on them until restore, which delivers it, late.
func (l *link) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gate:
		l.gate = make(chan struct{})
	default:
	}
}

// restore lets everything pass again.
func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusing = false
	select {
	case <-l.gate:
	default:
		close(l.gate)
	}
}

// close ends all connections and waits until nothing runs. It is called once.
func (l *link) close() {
	close(l.closed)
	_ = l.listener.Close()
	l.refuse()
	l.running.Wait()
}

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

func (l *link) accept() {
	for {
		c, err := l.listener.Accept()
		if err == nil {
			l.running.Go(func() { l.serve(c.(*net.TCPConn)) })
			continue
		}
		select {
		case <-l.closed:
			return
		case <-time.After(pollTime): // too many files are open: some will be closed
		}
	}
}

func (l *link) serve(client *net.TCPConn) {
	refused := l.add(client)
	defer l.remove(client)
	if refused {
		_ = client.SetReadDeadline(time.Now().Add(dialTime))
		_, _ = client.Read(make([]byte, 1))
		reset(client)
		return
	}
	server, err := net.DialTimeout(l.network, l.target, dialTime)
	if err != nil {
		reset(client)
		return
	}
	var replies sync.WaitGroup
	replies.Go(func() { l.relay(client, server) })
	l.relay(server, client)
	replies.Wait()
}

// add keeps account of a connection, and tells whether it is to be refused.
func (l *link) add(c *net.TCPConn) (refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return l.refusing
}

func (l *link) remove(c *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// relay copies until either side ends, and then ends both.
func (l *link) relay(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.pass() {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until bytes may pass; it is false once the link is closed.
func (l *link) pass() bool {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	select {
	case <-gate:
		return true
	case <-l.closed:
		return false
	}
}
