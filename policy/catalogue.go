package policy

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

type entry struct {
	name, alias string
	burst       bool // the algorithm's Limit has a Burst of its own
	queue       bool // it holds requests: the Burst is also how long
	new         func(algorithm.Limit) (sluice.Strategy, error)
}

// catalogue returns all algorithms, a line each.
func catalogue() []entry {
	return []entry{
		{name: "token_bucket", burst: true, new: strategy(tokenbucket.New)},
		{name: "fixed_window", new: strategy(fixedwindow.New)},
		{name: "sliding_window", new: strategy(slidingwindow.New)},
		{name: "leaky_bucket", alias: "leaky", burst: true, queue: true, new: strategy(leaky.New)},
	}
}

// strategy keeps a nil pointer beside an error from becoming a Strategy that is not nil.
func strategy[S sluice.Strategy](construct func(algorithm.Limit) (S, error)) func(algorithm.Limit) (sluice.Strategy, error) {
	return func(l algorithm.Limit) (sluice.Strategy, error) {
		s, err := construct(l)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

func find(name string) (entry, bool) {
	for _, e := range catalogue() {
		if name != "" && (name == e.name || name == e.alias) {
			return e, true
		}
	}
	return entry{}, false
}

// Algorithms returns the names that a limit's algorithm may have, in the order of the documentation.
func Algorithms() []string {
	var names []string
	for _, e := range catalogue() {
		names = append(names, e.name)
	}
	return names
}

// HasBurst tells whether limits of the named algorithm have a Burst of their own. It is false of the windows, which
// let their whole Count pass at one instant, and of unknown names.
func HasBurst(name string) bool {
	e, _ := find(name)
	return e.burst
}

// Holds tells whether the named algorithm holds requests, so that a limit of it may have a MaxDelay.
func Holds(name string) bool {
	e, _ := find(name)
	return e.queue
}

// NewStrategy returns the named algorithm with a limit. leaky is another name of leaky_bucket. The error names an
// unknown algorithm, or the field of l that does not fit, its value and its bound.
func NewStrategy(name string, l algorithm.Limit) (sluice.Strategy, error) {
	e, ok := find(name)
	if !ok {
		return nil, fmt.Errorf("policy: algorithm %q: want one of %s", name, strings.Join(Algorithms(), ", "))
	}
	s, err := e.new(l)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return s, nil
}
