package lab

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"
)

// echoes runs a server that sends back each line.
func echoes(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c) // one at a time
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, l *link) net.Conn {
	c, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends a line and returns what comes back within a time, or how that failed.
func ask(c net.Conn, within time.Duration) (string, error) {
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

func newTestLink(t *testing.T) *link {
	l, err := newLink("tcp", echoes(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

const soon, short = 5 * time.Second, 50 * time.Millisecond

func TestLinkRefuses(t *testing.T) {
	l := newTestLink(t)
	before := dial(t, l)
	if got, err := ask(before, soon); got != "hello\n" {
		t.Fatalf("%q, %v", got, err)
	}
	l.refuse()
	for what, c := range map[string]net.Conn{"old": before, "new": dial(t, l)} {
		start := time.Now()
		if got, err := ask(c, soon); err == nil || time.Since(start) >= soon {
			t.Errorf("%s connection: %q, %v after %v: want an error at once", what, got, err, time.Since(start))
		}
	}
	l.restore()
	if got, err := ask(dial(t, l), soon); got != "hello\n" {
		t.Errorf("restored: %q, %v", got, err)
	}
}

func TestLinkHangsAndDeliversLate(t *testing.T) {
	l := newTestLink(t)
	c := dial(t, l)
	if got, err := ask(c, soon); got != "hello\n" {
		t.Fatalf("%q, %v", got, err)
	}
	l.hang()
	l.hang()
	if got, err := ask(c, short); err == nil || !err.(net.Error).Timeout() {
		t.Errorf("%q, %v: want a timeout", got, err)
	}
	l.restore()
	l.restore()
	_ = c.SetDeadline(time.Now().Add(soon))
	if got, err := bufio.NewReader(c).ReadString('\n'); got != "hello\n" {
		t.Errorf("restored: %q, %v: want what was sent before", got, err)
	}
}

// A link is closed although bytes are held and connections are open.
func TestLinkClosesWhileHanging(t *testing.T) {
	l := newTestLink(t)
	l.hang()
	_, _ = ask(dial(t, l), short)
}
