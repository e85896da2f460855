package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// wire is how the clients of an experiment reach its server.
type wire struct {
	pool    int           // connections
	timeout time.Duration // of every call
	rtt     time.Duration // added to each round trip
	meter   *meter        // counts what is sent; nil: nobody
}

// meter counts what clients send.
type meter struct {
	commands atomic.Int64
	trips    atomic.Int64 // round trips: writes to a connection
	bytes    atomic.Int64 // both ways

	line atomic.Pointer[startLine] // that connections wait at; nil: none
}

// client returns a client of the server that sends nothing twice and obeys contexts. The caller closes it.
func (s *server) client(w wire) *goredis.Client {
	o := &goredis.Options{
		Network: s.network, Addr: s.addr,
		PoolSize: w.pool, PoolTimeout: w.timeout, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: w.timeout, ReadTimeout: w.timeout, WriteTimeout: w.timeout, ContextTimeoutEnabled: true,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if w.meter == nil {
		w.meter = &meter{}
	}
	dial := goredis.NewDialer(o)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &wireConn{Conn: c, rtt: w.rtt, meter: w.meter}, nil
	}
	c := goredis.NewClient(o)
	c.AddHook(commandHook{w.meter})
	return c
}

// warm connects all of a client's pool, so that no handshake falls into what is measured.
func warm(ctx context.Context, c *goredis.Client) error {
	conns := make([]*goredis.Conn, c.Options().PoolSize)
	errs := make([]error, len(conns))
	var connecting sync.WaitGroup
	for i := range conns {
		conns[i] = c.Conn()
		defer conns[i].Close()
		connecting.Go(func() { errs[i] = conns[i].Ping(ctx).Err() })
	}
	connecting.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("lab: before the run: %w", err)
	}
	return nil
}

// startLine lets the first requests of several connections leave at the same moment, whatever the scheduler does.
type startLine struct {
	missing atomic.Int64
	open    chan struct{}
}

// lineTime is the longest that a connection waits for the others.
const lineTime = time.Second

func newStartLine(conns int) *startLine {
	l := &startLine{open: make(chan struct{})}
	l.missing.Store(int64(conns))
	return l
}

func (l *startLine) wait() {
	if l.missing.Add(-1) == 0 {
		close(l.open)
	}
	late := time.NewTimer(lineTime)
	defer late.Stop()
	select {
	case <-l.open:
	case <-late.C:
	}
}

// wireConn makes each round trip longer, and counts. (A command, or a pipeline of them, is one write.)
type wireConn struct {
	net.Conn
	rtt    time.Duration
	meter  *meter
	passed *startLine // the last that it was at
}

func (c *wireConn) Write(b []byte) (int, error) {
	if c.rtt > 0 {
		time.Sleep(c.rtt)
	}
	if l := c.meter.line.Load(); l != c.passed {
		c.passed = l
		l.wait()
	}
	n, err := c.Conn.Write(b)
	c.meter.trips.Add(1)
	c.meter.bytes.Add(int64(n))
	return n, err
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.meter.bytes.Add(int64(n))
	return n, err
}

// commandHook counts commands, those of a pipeline or a transaction one by one.
type commandHook struct{ meter *meter }

func (commandHook) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h commandHook) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		h.meter.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (h commandHook) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		h.meter.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}
