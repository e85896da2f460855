package redis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

//go:embed one.lua
var oneLua string

//go:embed batch.lua
var batchLua string

//go:embed head.lua
var headLua string

//go:embed tail.lua
var tailLua string

// Source returns the Lua that one plain charge under st runs in Redis, ready for EVAL or SCRIPT LOAD by any client:
// KEYS[1] is the key, ARGV is now ("" for the server's clock), n, and the parameters that st.Lua returns.
func Source(st sluice.Strategy) string {
	script, _ := st.Lua()
	return composeOne(script)
}

// composed is a script as it is sent.
type composed struct {
	source string
	sha    string
}

func newComposed(source string) *composed {
	sum := sha1.Sum([]byte(source)) // what Redis names scripts by; nothing rests on its strength
	return &composed{source: source, sha: hex.EncodeToString(sum[:])}
}

// scripts composes each script once. Algorithms come from a program's own text, so that their number needs no bound.
type scripts struct {
	checked sync.Map // *algorithm.Script
	one     sync.Map // *algorithm.Script -> *composed: of one charge
	some    sync.Map // *algorithm.Script -> *composed: of several charges
	many    sync.Map // the algorithms' names, joined -> *composed: of any asks
}

// charge is the lean script of one plain charge.
func (s *scripts) charge(a *algorithm.Script) *composed { return composedIn(&s.one, a, composeOne) }

// batch is the script of several plain charges under one strategy.
func (s *scripts) batch(a *algorithm.Script) *composed { return composedIn(&s.some, a, composeBatch) }

func composedIn(m *sync.Map, a *algorithm.Script, compose func(*algorithm.Script) string) *composed {
	if c, ok := m.Load(a); ok {
		return c.(*composed)
	}
	c, _ := m.LoadOrStore(a, newComposed(compose(a)))
	return c.(*composed)
}

// any is the script of any asks of the given algorithms, which are distinct and sorted by name.
func (s *scripts) any(algorithms []*algorithm.Script) *composed {
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.Name
	}
	k := strings.Join(names, ",")
	if c, ok := s.many.Load(k); ok {
		return c.(*composed)
	}
	c, _ := s.many.LoadOrStore(k, newComposed(composeAny(algorithms)))
	return c.(*composed)
}

func composeOne(a *algorithm.Script) string { return composeCharge(a, oneLua) }

func composeBatch(a *algorithm.Script) string { return composeCharge(a, batchLua) }

func composeCharge(a *algorithm.Script, rest string) string {
	return fmt.Sprintf("local word1, word2, word3 = '%s', '%s', '%s'\n%s\n%s", a.Words[0], a.Words[1], a.Words[2], a.Source, rest)
}

func composeAny(algorithms []*algorithm.Script) string {
	var b strings.Builder
	b.WriteString(headLua)
	for i, a := range algorithms {
		fmt.Fprintf(&b, "do\n%s\ntakes[%d], adjusts[%d], words[%d] = take, adjust, { '%s', '%s', '%s' }\nend\n",
			a.Source, i+1, i+1, i+1, a.Words[0], a.Words[1], a.Words[2])
	}
	b.WriteString(tailLua)
	return b.String()
}

// check refuses an algorithm that can't be composed.
func (s *scripts) check(a *algorithm.Script) error {
	if _, ok := s.checked.Load(a); ok {
		return nil
	}
	if err := checkScript(a); err != nil {
		return err
	}
	s.checked.Store(a, nil)
	return nil
}

// checkScript tells whether a script's name and words can become parts of keys and of Lua text.
func checkScript(a *algorithm.Script) error {
	plain := func(s string) bool {
		return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
	}
	if !plain(a.Name) {
		return fmt.Errorf("redis: algorithm's name %q: want a-z, 0-9 and _", a.Name)
	}
	if len(a.Words) != len(algorithm.State{}) || slices.ContainsFunc(a.Words, func(w string) bool { return !plain(w) }) {
		return fmt.Errorf("redis: algorithm %s: words %q: want %d of a-z, 0-9 and _", a.Name, a.Words, len(algorithm.State{}))
	}
	return nil
}
