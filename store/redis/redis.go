// Package redis keeps states in Redis, where all processes share them: one decision is one round trip, and one script
// that no other command interrupts. It is written for Redis 5 to 8 and its kin, and tested on Redis 7.0 and miniredis:
// one node, a cluster or a ring, also through proxies that speak only RESP2.
//
// docs/lua.md gives the form of keys, arguments and replies, for clients in other languages.
package redis

import (
	"context"
	"fmt"
	"hash/maphash"
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
	// NoCoalescing sends each decision by itself, rather than with those that wait beside it. NoKnownDenials asks Redis
	// about every request, also where a denial less than a second old says that it would be denied. Neither changes a
	// decision; see docs/operations.md.
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
	patience  time.Duration // how long a lane waits for a batch while others queue
	clock     func() time.Time
	born      time.Time
	owned     bool // the client was opened here
	oneNode   bool // a client of one server, where any keys can be taken together
	alone     bool // each decision is sent by itself
	sharded   atomic.Bool
	scripts   scripts
	seed      maphash.Seed
	lanes     []lane
	denials   denials
	abandoned atomic.Int64 // commands and batches that nobody waits for any more
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
	s := &Store{
		client: client, prefix: o.Prefix, timeout: o.Timeout, patience: o.Timeout / 4, clock: o.Clock, born: time.Now(),
		alone: o.NoCoalescing, seed: maphash.MakeSeed(),
	}
	switch client.(type) {
	case *goredis.Client:
		s.oneNode = true
		s.lanes = make([]lane, nodeLanes)
	case *goredis.ClusterClient:
		s.lanes = make([]lane, clusterLanes)
	default: // a ring, whose shards can't be told from here: a batch would wait for the slowest
		s.alone = true
	}
	for i := range s.lanes {
		s.lanes[i].s, s.lanes[i].wake = s, make(chan struct{}, 1)
	}
	s.denials.off = o.NoKnownDenials
	return s
}

// How many batches may be away at a time: on one node, so that Redis works on one while another is written or read; in a
// cluster, so that most have keys of one node alone, and a node that hangs does not hold up the others' keys.
const (
	nodeLanes    = 3
	clusterLanes = 16
)

// hash spreads subjects over lanes and over what is remembered of denials.
func (s *Store) hash(subject string) uint64 { return maphash.String(s.seed, subject) }

// lane returns the lane of a key, and of all others of its subject.
func (s *Store) lane(hash uint64, key string) *lane {
	if s.oneNode {
		return &s.lanes[hash%nodeLanes]
	}
	return &s.lanes[slot(key)*clusterLanes/slots] // a node's slots usually follow one another
}

// elapsed is the time since the store was made, ns, on a clock that nobody sets.
func (s *Store) elapsed() int64 { return int64(time.Since(s.born)) }

// Close signs this instance off from the groups that it called Heartbeat for, and closes the client if Open made it.
// It may be called twice.
func (s *Store) Close() error {
	s.signOff()
	for i := range s.lanes {
		s.lanes[i].close()
	}
	if !s.owned || s.closed.Swap(true) {
		return nil
	}
	return s.client.Close()
}

// Take decides one ask in one round trip. Errors wrap ErrCost, ErrUnavailable or ErrState, or are context.Canceled.
func (s *Store) Take(ctx context.Context, a sluice.Ask) (d sluice.Decision, err error) {
	if err := a.Check(); err != nil {
		return sluice.Decision{}, err
	}
	hash := s.hash(a.Key.Subject)
	if a.Mode == sluice.Charge {
		if s.knownDenial(hash, &a, &d) {
			return d, nil
		}
	}
	script, params := a.Strategy.Lua()
	if err := s.scripts.check(script); err != nil {
		return sluice.Decision{}, err
	}
	if a.Mode != sluice.Charge {
		v, err := s.takeAny(ctx, []sluice.Ask{a})
		if err != nil {
			return sluice.Decision{}, err
		}
		return v.Each[0], nil
	}
	r := newRequest()
	r.ask, r.script, r.params = a, script, params
	r.ask.N = min(a.N, algorithm.Bound)
	r.key, r.hash, r.mark = s.key(a.Key, script.Name), hash, s.denials.mark(hash)
	if s.alone {
		return s.charge(ctx, r)
	}
	if err := s.lane(hash, r.key).do(ctx, r); err != nil {
		return sluice.Decision{}, classify(ctx, err) // r may be in a batch yet
	}
	if err := r.failure(); err != nil {
		return sluice.Decision{}, classify(ctx, err)
	}
	d = r.decision
	r.release()
	return d, nil
}

// charge makes one plain charge by itself.
func (s *Store) charge(ctx context.Context, r *request) (sluice.Decision, error) {
	args := make([]any, 0, 3+len(r.params))
	args = appendNumbers(append(args, r.key, s.now(), r.ask.N), r.params)
	sent := s.elapsed()
	reply, err := s.run(ctx, s.scripts.charge(r.script), 1, args)
	if err != nil {
		return sluice.Decision{}, classify(ctx, err)
	}
	d, state, err := readOne(&r.ask, r.script, reply)
	if err != nil {
		return sluice.Decision{}, err
	}
	r.decision = d
	s.denials.learn(r, state, sent, s.elapsed())
	r.release()
	return d, nil
}

// now is the script's first argument: the caller's clock in µs, or "" for the server's.
func (s *Store) now() any {
	if s.clock == nil {
		return ""
	}
	return algorithm.Clock(s.clock())
}
