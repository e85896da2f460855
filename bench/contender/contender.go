// Package contender has what is measured side by side on Redis: this module's store, its peers, and the floors that
// no limiter on Redis can go below.
package contender

import (
	"context"

	"github.com/sluice-go/sluice"
)

// Limiter is a contender at work, on a server and with a limit. It is safe for concurrent use.
type Limiter struct {
	Take  func(ctx context.Context, key string) (allowed bool, err error) // one decision of cost 1
	Close func() error
}

// Contender is one way to limit by Redis.
type Contender struct {
	Name  string
	About string // what it is, in a line
	Kind  Kind
	Open  func(addr string, l sluice.Limit) (Limiter, error)
}

// Kind says what a contender is there for.
type Kind int

const (
	Ours Kind = iota
	Peer
	Floor
)

// Names of the contenders that the bars are about.
const (
	Main = "sluice"     // ours, as most programs use it
	Base = "redis_rate" // the peer that ratios are against
	Eval = "return-1"   // the floor of a script
)

// All returns every contender, the base first.
func All() []Contender {
	return []Contender{
		{Base, "go-redis/redis_rate v10, go-redis's default client", Peer, openRedisRate},
		{Main, "store/redis, its client made by Open", Ours, opened("open", nil)},
		{"sluice-client", "store/redis on go-redis's default client", Ours, handed("hand", nil)},
		{"ulule", "ulule/limiter v3, fixed windows, go-redis's default client", Peer, openUlule},
		{"throttled", "throttled v2, GCRA by compare and swap, go-redis's default client", Peer, openThrottled},
		{"rueidis", "a minimal GCRA script through rueidis, which pipelines by itself", Peer, openRueidis},
		{Eval, "EVALSHA of `return 1` through go-redis's default client", Floor, openReturn1},
		{"PING", "PING through go-redis's default client", Floor, openPing},
	}
}

// Switched returns this module's store with parts of it switched off.
func Switched() []Contender {
	return []Contender{
		{"no-coalescing", "store/redis with NoCoalescing", Ours, opened("solo", noCoalescing)},
		{"no-known-denials", "store/redis with NoKnownDenials", Ours, opened("asks", noKnownDenials)},
	}
}
