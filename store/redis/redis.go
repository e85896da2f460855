// Package redis keeps states in Redis, where all processes share them: one decision is one round trip, and one script
// that no other command interrupts. It is written for Redis 5 to 8 and its kin, and tested on Redis 7.0 and miniredis:
// one node, a cluster or a ring, also through proxies that speak only RESP2.
//
// docs/lua.md gives the form of keys, arguments and replies, for clients in other languages.
package redis

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

// Options are the choices of a Store. The zero Options are good for most programs.
type Options struct {
	Prefix  string           // begins every key; "": "sluice". No brace, since the subject is the hash tag
	Timeout time.Duration    // a whole call, connecting included; 0: 50ms
	Clock   func() time.Time // nil: Redis TIME, read in the script, which all processes share
	// NoCoalescing sends each decision by itself. NoKnownDenials asks Redis about every request. (Today every
	// decision is sent by itself and asked; the fields stand for programs that want it so for good.)
	NoCoalescing, NoKnownDenials bool
}

const (
	defaultPrefix  = "sluice"
	defaultTimeout = 50 * time.Millisecond
)

// Store decides in Redis. It is safe for concurrent use.
//
// Every call returns by the Timeout, the caller's deadline or its cancellation, whichever is first, even if Redis
// hangs; a command that hangs then is left to end by itself, and while 64 do, calls fail at once. A call is executed
// at most once, whatever the client's settings for retries. One that failed, or was cancelled, may have been charged.
type Store struct {
	client    goredis.UniversalClient
	prefix    string
	timeout   time.Duration
	clock     func() time.Time
	owned     bool // the client was opened here
	oneNode   bool // a client of one server, where any keys can be taken together
	sharded   atomic.Bool
	scripts   scripts
	abandoned atomic.Int64
	beats     beats
	closed    atomic.Bool
}

// maxAbandoned is how many commands may hang after their callers have gone.
const maxAbandoned = 64

// New returns a store on a client, which stays the caller's to close. Its settings are kept, but for retries: a
// decision is never sent twice. It panics if o.Prefix has a brace.
func New(client goredis.UniversalClient, o Options) *Store {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		panic(fmt.Sprintf("redis: Prefix %q: want no brace", o.Prefix))
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	_, oneNode := client.(*goredis.Client)
	return &Store{client: client, prefix: o.Prefix, timeout: o.Timeout, clock: o.Clock, oneNode: oneNode}
}

// Close signs this instance off from the groups that it called Heartbeat for, and closes the client if Open made it.
// It may be called twice.
func (s *Store) Close() error {
	s.signOff()
	if !s.owned || s.closed.Swap(true) {
		return nil
	}
	return s.client.Close()
}

// Take decides one ask in one round trip. Errors wrap ErrCost, ErrUnavailable or ErrState, or are context.Canceled.
func (s *Store) Take(ctx context.Context, a sluice.Ask) (sluice.Decision, error) {
	if err := a.Check(); err != nil {
		return sluice.Decision{}, err
	}
	script, params := a.Strategy.Lua()
	if err := checkScript(script); err != nil {
		return sluice.Decision{}, err
	}
	if a.Mode != sluice.Charge {
		v, err := s.takeAny(ctx, []sluice.Ask{a})
		if err != nil {
			return sluice.Decision{}, err
		}
		return v.Each[0], nil
	}

	args := make([]any, 0, 5+len(params))
	args = append(args, s.key(a.Key, script.Name), s.now(), min(a.N, algorithm.Bound))
	for _, p := range params {
		args = append(args, p)
	}
	reply, err := s.run(ctx, s.scripts.charge(script), 1, args)
	if err != nil {
		return sluice.Decision{}, classify(ctx, err)
	}
	return s.readOne(&a, script, reply)
}

// now is the script's first argument: the caller's clock in µs, or "" for the server's.
func (s *Store) now() any {
	if s.clock == nil {
		return ""
	}
	return algorithm.Clock(s.clock())
}
