package lab

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The first writes of connections leave together; later ones, and those of a connection that comes late, when they want to.
func TestStartLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rtt = 10 * time.Millisecond
		m := &meter{}
		m.line.Store(newStartLine(2))
		start := time.Now()
		var writing sync.WaitGroup
		write := func(after time.Duration, want ...time.Duration) {
			near, far := net.Pipe()
			c := &wireConn{Conn: near, rtt: rtt, meter: m}
			writing.Go(func() {
				defer near.Close()
				time.Sleep(after)
				for range want {
					_, _ = c.Write([]byte("x"))
				}
			})
			writing.Go(func() {
				for i, at := range want {
					if _, err := far.Read(make([]byte, 1)); err != nil || time.Since(start) != at {
						t.Errorf("after %v, write %d arrives at %v, %v, want at %v", after, i, time.Since(start), err, at)
					}
				}
			})
		}
		write(0, 50*time.Millisecond, 60*time.Millisecond)
		write(40*time.Millisecond, 50*time.Millisecond, 60*time.Millisecond)
		write(100*time.Millisecond, 110*time.Millisecond)
		writing.Wait()
		if m.trips.Load() != 5 || m.bytes.Load() != 5 {
			t.Errorf("%d trips, %d bytes, want 5 of each", m.trips.Load(), m.bytes.Load())
		}
	})
}

// A connection does not wait for others that never come.
func TestStartLineAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		newStartLine(2).wait()
		if waited := time.Since(start); waited != lineTime {
			t.Errorf("%v, want %v", waited, lineTime)
		}
	})
}
