package redis

import (
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Client returns the client that [Open] would make for a URL, with no store on it: for what a store does not do, such
// as asking the server about itself. It is the caller's to close. An error never quotes the URL.
func Client(rawURL string, timeout time.Duration) (goredis.UniversalClient, error) {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return open(rawURL, timeout)
}
