package engine

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// Strategy returns the named algorithm with a limit.
func Strategy(name string, l algorithm.Limit) (algorithm.Strategy, error) {
	switch name {
	case "token_bucket":
		return built(tokenbucket.New(l))
	case "fixed_window":
		return built(fixedwindow.New(l))
	case "sliding_window":
		return built(slidingwindow.New(l))
	case "leaky_bucket":
		return built(leaky.New(l))
	}
	return nil, fmt.Errorf("engine: algorithm %q: want one of %s", name, strings.Join(Algorithms(), ", "))
}

// built keeps a nil pointer beside an error from becoming a Strategy that is not nil.
func built[S algorithm.Strategy](st S, err error) (algorithm.Strategy, error) {
	if err != nil {
		return nil, err
	}
	return st, nil
}
