package failover

import (
	"fmt"

	"github.com/sony/gobreaker/v2"
)

// State is what a [Breaker] does with calls to its primary.
type State uint8

const (
	Closed   State = iota // the primary decides
	Open                  // the fallback decides, and the primary is not asked
	HalfOpen              // a few calls probe the primary; the fallback decides all others
)

// String returns closed, open or half-open.
func (s State) String() string {
	if names := [...]string{"closed", "open", "half-open"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

func stateOf(s gobreaker.State) State {
	switch s {
	case gobreaker.StateOpen:
		return Open
	case gobreaker.StateHalfOpen:
		return HalfOpen
	}
	return Closed
}
