package redis

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// dialer is how go-redis connects.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// late puts connecting off to the first use of a connection, the handshake. A client's pool counts failed attempts to
// connect: after as many as it has places it answers with the last error, and looks only once a second whether the
// server is back. A limiter's breaker does that better, and its probe must find out at once. An attempt that fails in
// the handshake is not counted. raw says that connections are sockets, whose health the client looks at itself.
func late(dial dialer, timeout time.Duration, raw bool) dialer {
	return func(_ context.Context, network, addr string) (net.Conn, error) {
		c := &lateConn{dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, addr) }, timeout: timeout}
		if raw {
			return lateSocket{c}, nil
		}
		return c, nil
	}
}

// lateConn connects when it is first written to or read from. It is safe for concurrent use, as any net.Conn.
type lateConn struct {
	dial    func(context.Context) (net.Conn, error)
	timeout time.Duration // of connecting

	made       atomic.Pointer[net.Conn] // nil: not connected yet
	connecting sync.Mutex               // held while it connects

	mu          sync.Mutex
	read, write time.Time // deadlines that were set before it was connected
	closed      bool
}

// connected returns the connection, made at the first call.
func (c *lateConn) connected() (net.Conn, error) {
	if conn := c.made.Load(); conn != nil {
		return *conn, nil
	}
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if conn := c.made.Load(); conn != nil {
		return *conn, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	if deadline := c.writeDeadline(); !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	if err := errors.Join(conn.SetReadDeadline(c.read), conn.SetWriteDeadline(c.write)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.made.Store(&conn)
	return conn, nil
}

func (c *lateConn) writeDeadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write
}

func (c *lateConn) Read(b []byte) (int, error) {
	conn, err := c.connected()
	if err != nil {
		return 0, err
	}
	return conn.Read(b)
}

func (c *lateConn) Write(b []byte) (int, error) {
	conn, err := c.connected()
	if err != nil {
		return 0, err
	}
	return conn.Write(b)
}

func (c *lateConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if conn := c.made.Load(); conn != nil {
		return (*conn).Close()
	}
	return nil
}

func (c *lateConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *lateConn) SetReadDeadline(t time.Time) error {
	return c.set(&c.read, t, net.Conn.SetReadDeadline)
}

func (c *lateConn) SetWriteDeadline(t time.Time) error {
	return c.set(&c.write, t, net.Conn.SetWriteDeadline)
}

// set keeps a deadline until there is a connection to have it.
func (c *lateConn) set(kept *time.Time, t time.Time, on func(net.Conn, time.Time) error) error {
	if conn := c.made.Load(); conn != nil {
		return on(*conn, t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.made.Load(); conn != nil {
		return on(*conn, t)
	}
	*kept = t
	return nil
}

func (c *lateConn) LocalAddr() net.Addr { return c.addr(net.Conn.LocalAddr) }

func (c *lateConn) RemoteAddr() net.Addr { return c.addr(net.Conn.RemoteAddr) }

func (c *lateConn) addr(of func(net.Conn) net.Addr) net.Addr {
	if conn := c.made.Load(); conn != nil {
		return of(*conn)
	}
	return nowhere{}
}

// nowhere is the address of a connection that is not made yet.
type nowhere struct{}

func (nowhere) Network() string { return "none" }
func (nowhere) String() string  { return "not connected" }

// lateSocket is a lateConn without TLS.
type lateSocket struct{ *lateConn }

// SyscallConn lets the client see whether the server has closed an idle connection.
func (c lateSocket) SyscallConn() (syscall.RawConn, error) {
	conn := c.made.Load()
	if conn == nil {
		return nil, errors.New("redis: not connected yet")
	}
	socket, ok := (*conn).(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return socket.SyscallConn()
}
