package redistest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// users numbers the users that ACLUser made, so that tests that share a server don't meet.
var users atomic.Int64

// ACLUser makes a user of the server with these rules alone, such as "~sluice:*", "+evalsha", and returns a client
// that is logged in as that user. The user is deleted when t ends.
func ACLUser(t testing.TB, s *Server, rules ...string) *goredis.Client {
	t.Helper()
	name, password := fmt.Sprintf("user%d", users.Add(1)), "secret"
	args := []any{"acl", "setuser", name, "reset", "on", ">" + password}
	for _, r := range rules {
		args = append(args, r)
	}
	admin := newClient(t, s.Addr)
	if err := admin.Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("redistest: acl setuser %s: %v", strings.Join(rules, " "), err)
	}
	t.Cleanup(func() { _ = admin.Do(context.Background(), "acl", "deluser", name).Err() })
	return newClient(t, s.Addr, func(o *goredis.Options) { o.Username, o.Password = name, password })
}
