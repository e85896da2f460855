// Package algorithmtest checks that an algorithm keeps the contract of [algorithm.Strategy] and that its Lua half is
// its twin. It is for authors of algorithms, as testing/slogtest is for authors of log handlers.
//
// An author writes histories in testdata/*.txt (the grammar is at [Vectors]), says what the algorithm promises over
// time in a [Law], and adds to the package's tests:
//
//	var build = algorithmtest.Of(mybucket.New)
//
//	func TestVectors(t *testing.T)    { algorithmtest.Vectors(t, "testdata/*.txt", build) }
//	func TestInvariants(t *testing.T) { algorithmtest.Invariants(t, build, algorithmtest.Bucket()) }
//	func TestTwins(t *testing.T)      { algorithmtest.Twins(t, 20_000, build) }
//	func FuzzTwins(f *testing.F)      { algorithmtest.FuzzTwins(f, build) }
//
// Importing the package registers the flag -update, with which go test rewrites the results in the vector files.
package algorithmtest

import "github.com/sluice-go/sluice/algorithm"

// New is a constructor of an algorithm: the same limit gives the same strategy. See [Of].
type New func(algorithm.Limit) (algorithm.Strategy, error)

// Of makes a New of a constructor that returns its own type, such as tokenbucket.New.
func Of[S algorithm.Strategy](build func(algorithm.Limit) (S, error)) New {
	return func(l algorithm.Limit) (algorithm.Strategy, error) {
		st, err := build(l)
		if err != nil {
			return nil, err
		}
		return st, nil
	}
}
