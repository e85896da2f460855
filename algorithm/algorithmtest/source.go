package algorithmtest

import (
	"encoding/binary"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// source is where a history's choices come from: a seed, a fuzzer's bytes, or rapid.
type source interface {
	below(n int64) int64 // 0 <= it < n, n at least 1
	empty() bool         // no more choices: the history ends
}

type seeded struct{ *rand.Rand }

func newSeeded(seed uint64) seeded { return seeded{rand.New(rand.NewPCG(seed, 0))} }

func (s seeded) below(n int64) int64 { return s.Int64N(n) }
func (s seeded) empty() bool         { return false }

// fed reads a byte for a small choice and eight for a large one; after the last byte, every choice is 0.
type fed struct{ data []byte }

func (f *fed) below(n int64) int64 {
	if n <= 256 {
		return int64(f.next(1)[0]) % n
	}
	return int64(binary.LittleEndian.Uint64(f.next(8)) % uint64(n))
}

func (f *fed) next(n int) []byte {
	b := make([]byte, n)
	f.data = f.data[copy(b, f.data):]
	return b
}

func (f *fed) empty() bool { return len(f.data) == 0 }

type drawn struct{ *rapid.T }

func (d drawn) below(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(d.T, "choice") }
func (d drawn) empty() bool         { return false }

// oneOf is a choice among equals.
func oneOf[T any](src source, from ...T) T { return from[src.below(int64(len(from)))] }

// spread is a number from 0 to 2^bits-1 of which every size is as likely as any other.
func spread(src source, bits int64) int64 { return src.below(1 << src.below(bits+1)) }
