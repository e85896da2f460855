package redistest_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/internal/redistest"
)

func TestProxyForwardsAndBreaks(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr)
	direct := s.Client()
	through := func(t *testing.T) *goredis.Client {
		t.Helper()
		c := goredis.NewClient(&goredis.Options{Addr: p.Addr, MaxRetries: -1, DialerRetries: 1, PoolSize: 1,
			ReadTimeout: 200 * time.Millisecond, DialTimeout: 200 * time.Millisecond})
		t.Cleanup(func() { _ = c.Close() })
		ok(t, c.Ping(ctx).Err())
		return c
	}
	count := func() string { return direct.Get(ctx, "n").Val() }

	t.Run("BlackHole", func(t *testing.T) {
		c := through(t)
		direct.Set(ctx, "n", 0, 0)
		p.BlackHole(true)
		fails(t, "an open connection", c.Incr(ctx, "n").Err())
		fails(t, "a new connection", c.Incr(ctx, "n").Err())
		p.BlackHole(false)
		ok(t, c.Ping(ctx).Err())
		if count() != "0" {
			t.Errorf("%s requests were executed", count())
		}
	})
	t.Run("DropReplies", func(t *testing.T) {
		c := through(t)
		direct.Set(ctx, "n", 0, 0)
		p.DropReplies(true)
		fails(t, "a lost reply", c.Incr(ctx, "n").Err())
		p.DropReplies(false)
		ok(t, c.Ping(ctx).Err())
		if count() != "1" {
			t.Errorf("%s requests were executed, want 1", count())
		}
	})
	t.Run("Delay", func(t *testing.T) {
		c := through(t)
		p.Delay(50 * time.Millisecond)
		defer p.Delay(0)
		start := time.Now()
		ok(t, c.Ping(ctx).Err())
		if took := time.Since(start); took < 50*time.Millisecond {
			t.Errorf("a reply took %v", took)
		}
	})
	t.Run("CutReplies", func(t *testing.T) {
		c := through(t)
		direct.Set(ctx, "n", 0, 0)
		p.CutReplies(2)
		fails(t, "a cut reply", c.Incr(ctx, "n").Err())
		p.CutReplies(-1)
		ok(t, c.Ping(ctx).Err())
		if count() != "1" {
			t.Errorf("%s requests were executed, want 1", count())
		}
	})
	t.Run("Reset", func(t *testing.T) {
		c, err := net.Dial("tcp", p.Addr)
		ok(t, err)
		defer c.Close()
		_, _ = io.WriteString(c, "PING\r\n")
		_, err = bufio.NewReader(c).ReadString('\n')
		ok(t, err)
		p.Reset()
		if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset") {
			t.Errorf("read: %v, want a reset", err)
		}
	})
	t.Run("Refuse", func(t *testing.T) {
		c := through(t)
		p.Refuse(true)
		ok(t, c.Ping(ctx).Err())
		if _, err := net.Dial("tcp", p.Addr); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("dial: %v, want refused", err)
		}
		p.Refuse(false)
		accepted := p.Accepted()
		through(t)
		if p.Accepted() == accepted || p.Open() == 0 {
			t.Errorf("Accepted %d as before, Open %d", p.Accepted(), p.Open())
		}
	})
}

func TestProxiesLeaveNoGoroutine(t *testing.T) {
	s := redistest.Start(t)
	before := goleak.IgnoreCurrent()
	p, r := redistest.StartProxy(t, s.Addr), redistest.StartResp2Proxy(t, s)
	for _, addr := range []string{p.Addr, r.Addr} {
		for range 3 {
			c, err := net.Dial("tcp", addr)
			ok(t, err)
			defer c.Close()
			_, err = io.WriteString(c, "PING\r\n*1\r\n$4\r\nPI")
			ok(t, err)
			_, err = bufio.NewReader(c).ReadString('\n')
			ok(t, err)
		}
	}
	p.BlackHole(true)
	p.Delay(time.Hour)
	p.Close()
	p.Close()
	r.Close()
	r.Close()
	goleak.VerifyNone(t, before)
}

func TestResp2ProxyKeepsTheOrderOfAPipeline(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.StartResp2Proxy(t, s, "GET")
	c, err := net.Dial("tcp", p.Addr)
	ok(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"+
		"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nx\r\nyz\r\n"+
		"*2\r\n$6\r\nclient\r\n$2\r\nid\r\n"+
		"PING\r\n\r\n*0\r\n"+
		"*4\r\n$4\r\nEVAL\r\n$37\r\nreturn {1, {'a\\r\\n', {}}, 'b', false}\r\n$1\r\n0\r\n$1\r\nx\r\n"+
		"get a\r\n"+
		"*2\r\n$6\r\nSTRLEN\r\n$1\r\na\r\n")
	ok(t, err)
	want := "-ERR unknown command 'hello'\r\n" +
		"+OK\r\n" +
		"-ERR unknown command 'client'\r\n" +
		"+PONG\r\n" +
		"*4\r\n:1\r\n*2\r\n$3\r\na\r\n\r\n*0\r\n$1\r\nb\r\n$-1\r\n" +
		"-ERR unknown command 'get'\r\n" +
		":5\r\n"
	got := make([]byte, len(want))
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := io.ReadFull(c, got)
	if err != nil || string(got) != want {
		t.Fatalf("%v:\n got %q\nwant %q", err, got[:n], want)
	}
}

func TestResp2ProxyServesGoRedis(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.StartResp2Proxy(t, s)
	c := p.Client()
	ok(t, c.Set(ctx, "a", "1", 0).Err())
	if v, err := c.Get(ctx, "a").Result(); err != nil || v != "1" {
		t.Errorf("GET: %q, %v", v, err)
	}
	fails(t, "CLIENT ID", c.ClientID(ctx).Err())
	if n := p.Refused()["hello"]; n == 0 {
		t.Error("HELLO was not refused")
	}
}
