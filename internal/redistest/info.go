package redistest

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// Info returns the fields of a section of INFO, such as "server" or "memory".
func (s *Server) Info(section string) map[string]string {
	s.tb.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaintNotificationsConfig: quiet()})
	defer c.Close()
	text, err := c.Info(context.Background(), section).Result()
	if err != nil {
		s.tb.Fatalf("redistest: info %s: %v", section, err)
	}
	return parseInfo(text)
}

// Version returns the version of Redis that the server says to be, such as "7.0.15".
func (s *Server) Version() string {
	s.tb.Helper()
	return s.Info("server")["redis_version"]
}

// Calls returns how often each command was called since the server started, commands that scripts called included:
// names are lower case, as "evalsha", "hset" or "client|setinfo". Of a cluster or a ring it returns the sum.
func Calls(t testing.TB, client goredis.UniversalClient) map[string]int64 {
	t.Helper()
	var mu sync.Mutex
	calls := map[string]int64{}
	add := func(ctx context.Context, node *goredis.Client) error {
		text, err := node.Info(ctx, "commandstats").Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for name, fields := range parseInfo(text) {
			first, _, _ := strings.Cut(fields, ",")
			n, err := strconv.ParseInt(strings.TrimPrefix(first, "calls="), 10, 64)
			if err != nil {
				return err
			}
			calls[strings.TrimPrefix(name, "cmdstat_")] += n
		}
		return nil
	}
	ctx := context.Background()
	var err error
	switch c := client.(type) {
	case *goredis.Client:
		err = add(ctx, c)
	case *goredis.ClusterClient:
		err = c.ForEachMaster(ctx, add)
	case *goredis.Ring:
		err = c.ForEachShard(ctx, add)
	default:
		t.Fatalf("redistest: Calls of a %T: want a Client, ClusterClient or Ring", client)
	}
	if err != nil {
		t.Fatalf("redistest: info commandstats: %v", err)
	}
	return calls
}

// CallsOf returns how often each command was called while f ran, those of the connections' handshakes and of reading
// the counts left out: no key, no call.
func CallsOf(t testing.TB, client goredis.UniversalClient, f func()) map[string]int64 {
	t.Helper()
	before := Calls(t, client)
	f()
	during := Calls(t, client)
	for name, n := range before {
		during[name] -= n
	}
	for name, n := range during {
		if n == 0 || name == "info" || name == "hello" || strings.HasPrefix(name, "client") || strings.HasPrefix(name, "cluster") {
			delete(during, name)
		}
	}
	return during
}

// parseInfo reads the lines "name:value" of INFO and CLUSTER INFO.
func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
