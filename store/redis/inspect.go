package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

//go:embed inspect.lua
var inspectLua string

// inspect is immutable.
var inspect = newComposed(inspectLua)

// Entry is what Redis keeps of one key, and what it means.
type Entry struct {
	Key      string            // as Redis has it
	Words    map[string]string // by name, as they stand; empty: nothing is kept
	TTL      time.Duration     // until Redis forgets it; NoTTL; 0: nothing is kept, or the user has no right to PTTL
	Decision sluice.Decision   // of a Peek for the ask's N
}

// NoTTL is the TTL of a key that stays until its next charge: someone has called PERSIST on it.
const NoTTL = time.Duration(-1)

// Inspect returns what is kept of a's key, in one round trip, and changes nothing; a.Mode and a.At do not count. Where
// the words are unusable the error is ErrState, and the Entry has them as they stand. Other errors are those of Take.
// A user needs no other rights than for Peek; with PTTL, the Entry has its TTL.
func (s *Store) Inspect(ctx context.Context, a sluice.Ask) (Entry, error) {
	a.Mode = sluice.Peek
	if err := a.Check(); err != nil {
		return Entry{}, err
	}
	script, _ := a.Strategy.Lua()
	if err := s.scripts.check(script); err != nil {
		return Entry{}, err
	}
	e := Entry{Key: s.key(a.Key, script.Name)}
	reply, err := s.run(ctx, inspect, 1, []any{e.Key, s.now(), script.Words[0], script.Words[1], script.Words[2]})
	if err != nil {
		return e, classify(ctx, err)
	}
	return e, e.read(&a, script, reply)
}

// read fills the entry from a reply.
func (e *Entry) read(a *sluice.Ask, script *algorithm.Script, reply any) error {
	r := newReader(reply)
	now, ttl := r.now(), r.next()
	e.Words = map[string]string{}
	for i, name := range script.Words {
		if i < len(r.items) && r.items[i] != nil {
			e.Words[name] = fmt.Sprint(r.items[i])
		}
	}
	state, err := r.words(a.Key.Rule, script)
	if end := r.end(); end != nil {
		return end
	}
	if ms, ok := ttl.(int64); ok {
		switch {
		case ms >= 0:
			e.TTL = time.Duration(ms) * time.Millisecond
		case ms == -1:
			e.TTL = NoTTL
		}
	}
	if err == nil {
		_, e.Decision = a.Decide(state, now)
	}
	return err
}

// KeyOf returns the Redis key of a's state.
func (s *Store) KeyOf(a sluice.Ask) string {
	script, _ := a.Strategy.Lua()
	return s.key(a.Key, script.Name)
}
