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
	one  sync.Map // *algorithm.Script -> *composed
	many sync.Map // the algorithms' names, joined -> *composed
}

// charge is the lean script of one plain charge.
func (s *scripts) charge(a *algorithm.Script) *composed {
	if c, ok := s.one.Load(a); ok {
		return c.(*composed)
	}
	c, _ := s.one.LoadOrStore(a, newComposed(composeOne(a)))
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

func composeOne(a *algorithm.Script) string {
	return fmt.Sprintf("local word1, word2, word3 = '%s', '%s', '%s'\n%s\n%s", a.Words[0], a.Words[1], a.Words[2], a.Source, oneLua)
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

// checkScript refuses an algorithm that can't be composed: its name and words become parts of keys and of Lua text.
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
