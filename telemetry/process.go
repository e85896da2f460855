package telemetry

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/failover"
)

// Process says where to read what one process knows of itself, each time that it is asked. Every field may be left out.
// The functions are called from many goroutines, and must not wait for a store.
type Process struct {
	Breaker func() failover.State // Breaker.State
	Share   func() float64        // Breaker.Share: of each limit, while the shared store is away
	Stores  map[string]LocalStore // stores that keep keys in process, by a name of few: each is a label
	Rules   func() Rules
}

// LocalStore is what Store and Buckets of package store/local tell.
type LocalStore interface {
	Len() int         // keys kept
	Overflows() int64 // decisions made for want of room
}

// Rules is the rule file that a process runs, as Service.Status of package service has it.
type Rules struct {
	Hash    string    // of the text that runs
	Mode    string    // of the rules
	Count   int       // of rules
	Loaded  time.Time // when that text was read
	Refused time.Time // when the file was read last and refused, so that older rules run; zero: it runs

	Loads, Refusals int64 // readings of the file that were made the rules, the first too, and that were refused
}

// Instances is how many processes share each limit, where one's part is share.
func Instances(share float64) int64 {
	if !(share > 0) {
		return 1
	}
	return int64(math.Round(1 / max(share, 1e-9)))
}
