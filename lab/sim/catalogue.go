package sim

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// ExactLog is the name of the oracle among those of the algorithms.
const ExactLog = "exact_log"

// Algorithms returns the names that [New] knows, in the order of the documentation: package policy's, which a browser
// would find heavy, and ExactLog.
func Algorithms() []string {
	return []string{"token_bucket", "fixed_window", "sliding_window", "leaky_bucket", ExactLog}
}

// New returns a limiter by its name. A window's burst is its count, whatever l.Burst is; for the others a Burst of 0
// is the count.
func New(name string, l algorithm.Limit) (Limiter, error) {
	window := l
	window.Burst = 0
	if l.Burst == 0 {
		l.Burst = l.Count
	}
	var st algorithm.Strategy
	var err error
	switch name {
	case "token_bucket":
		st, err = tokenbucket.New(l)
	case "fixed_window":
		st, err = fixedwindow.New(window)
	case "sliding_window":
		st, err = slidingwindow.New(window)
	case "leaky_bucket":
		st, err = leaky.New(l)
	case ExactLog:
		return Exact(window)
	default:
		return nil, fmt.Errorf("sim: algorithm %q: want one of %s", name, strings.Join(Algorithms(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return Of(st), nil
}
