package redis

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice"
)

//go:embed heartbeat.lua
var heartbeatLua string

// heartbeat is immutable.
var heartbeat = newComposed(heartbeatLua)

// beatCounts is how long an instance counts after its last beat.
const beatCounts = 10 * time.Second

// mostGroups bounds how many groups one Store beats for; most programs have one.
const mostGroups = 64

// beats is this store's part in the groups that it beats for.
type beats struct {
	mu     sync.Mutex
	id     string // random, of this Store
	groups map[string]struct{}
	closed bool
}

// Heartbeat says in Redis that this instance lives, and returns how many of its group do: those that called within
// the last 10 s, by the server's clock. An instance is one Store. Call it each second, as failover's Breaker does; it
// takes at most the store's Timeout, and its errors are those of Take. Close signs off.
//
// The group is one small key, <prefix>:{<group>}:instances, on any client, a Cluster's or a Ring's too. A user needs
// the commands EVALSHA and EVAL, and in the script TIME, ZADD, ZREM, ZREMRANGEBYSCORE, ZCARD and PEXPIRE.
func (s *Store) Heartbeat(ctx context.Context, group string) (instances int, err error) {
	id, err := s.beats.join(group)
	if err != nil {
		return 0, err
	}
	reply, err := s.run(ctx, heartbeat, 1, []any{s.groupKey(group), id, beatCounts.Milliseconds()})
	if err != nil {
		return 0, classify(ctx, err)
	}
	n, ok := reply.(int64)
	if !ok || n < 1 {
		return 0, fmt.Errorf("%w: heartbeat of group %q: reply is %v, want a number above 0", sluice.ErrState, group, reply)
	}
	return int(min(n, 1<<31-1)), nil
}

// groupKey is written as keys of states are, with one part less, so that it is none of theirs.
func (s *Store) groupKey(group string) string {
	b := append([]byte(s.prefix), ":{"...)
	return string(append(appendPart(b, group), "}:instances"...))
}

// join returns the instance's name, and remembers the group for signing off.
func (b *beats) join(group string) (id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", fmt.Errorf("%w: heartbeat of group %q: the store is closed", sluice.ErrUnavailable, group)
	}
	if _, ok := b.groups[group]; !ok && len(b.groups) == mostGroups {
		return "", fmt.Errorf("redis: heartbeat of group %q: %d groups are in use already, the most for one Store", group, mostGroups)
	}
	if b.id == "" {
		b.id, b.groups = rand.Text(), make(map[string]struct{})
	}
	b.groups[group] = struct{}{}
	return b.id, nil
}

// leave returns what to sign off, once.
func (b *beats) leave() (id string, groups map[string]struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return "", nil
	}
	b.closed = true
	return b.id, b.groups
}

// signOff takes this instance out of its groups, within the store's timeout in all. Where that fails, it counts for
// 10 s yet.
func (s *Store) signOff() {
	id, groups := s.beats.leave()
	if len(groups) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	for group := range groups {
		_, _ = s.run(ctx, heartbeat, 1, []any{s.groupKey(group), id, ""})
	}
}
