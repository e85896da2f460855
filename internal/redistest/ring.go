package redistest

import (
	"strconv"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// Ring is a number of plain servers that a client shards by consistent hashing.
type Ring struct {
	Servers []*Server

	tb testing.TB
}

// StartRing runs n plain servers that are killed when t ends.
func StartRing(t testing.TB, n int) *Ring {
	t.Helper()
	r := &Ring{tb: t}
	for range n {
		r.Servers = append(r.Servers, Start(t))
	}
	return r
}

// Addrs returns the servers' addresses.
func (r *Ring) Addrs() []string { return addrs(r.Servers) }

// Client returns a go-redis Ring of the servers that is closed when the test ends. Each edit may change its options.
func (r *Ring) Client(edit ...func(*goredis.RingOptions)) *goredis.Ring {
	o := &goredis.RingOptions{Addrs: map[string]string{}}
	for i, s := range r.Servers {
		o.Addrs["shard"+strconv.Itoa(i)] = s.Addr
	}
	for _, f := range edit {
		f(o)
	}
	client := goredis.NewRing(o)
	r.tb.Cleanup(func() { _ = client.Close() })
	return client
}
