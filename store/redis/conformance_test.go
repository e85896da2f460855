package redis

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/storetest"
)

// prefixes gives each store of a shared server keys of its own.
var prefixes atomic.Int64

// fresh makes stores on one client, each with a prefix of its own. The timeout is long: the suite loads a store from
// 64 goroutines, and machines are slow at times.
func fresh(client goredis.UniversalClient, clock *storetest.Clock) func(*testing.T) sluice.Store {
	return freshWith(client, clock, Options{})
}

// freshWith does so with other options.
func freshWith(client goredis.UniversalClient, clock *storetest.Clock, o Options) func(*testing.T) sluice.Store {
	return func(*testing.T) sluice.Store {
		o := Options{NoCoalescing: o.NoCoalescing, NoKnownDenials: o.NoKnownDenials, Prefix: fmt.Sprintf("t%d", prefixes.Add(1)), Timeout: 20 * time.Second}
		if clock != nil {
			o.Clock = clock.Now
		}
		return New(client, o)
	}
}

// aclRules is what docs/operations.md lists for a limiter's user, and no more.
var aclRules = []string{"resetkeys", "~t*", "-@all", "+eval", "+evalsha", "+time", "+hmget", "+hset", "+pexpire", "+del", "+hello"}

func TestConformance(t *testing.T) {
	clock := new(storetest.Clock)
	server := redistest.Shared(t)
	mini := miniredis.RunT(t)
	one := redistest.StartCluster(t, 1)
	three := redistest.StartCluster(t, 3)
	ring := redistest.StartRing(t, 3)
	for _, c := range []struct {
		name   string
		client goredis.UniversalClient
		clock  *storetest.Clock
		atomic bool
	}{
		{"redis", server.Client(), clock, true},
		{"server clock", server.Client(), nil, true},
		{"miniredis", goredis.NewClient(&goredis.Options{Addr: mini.Addr()}), clock, true},
		{"cluster of one", one.Client(), clock, false},
		{"cluster", three.Client(), clock, false},
		{"cluster node behind a plain client", one.Nodes[0].Client(), clock, false}, // answers CROSSSLOT
		{"ring", ring.Client(), clock, false},
		{"acl", redistest.ACLUser(t, server, aclRules...), clock, true},
		{"resp2 proxy", redistest.StartResp2Proxy(t, server).Client(), clock, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			storetest.Run(t, storetest.Config{
				New: fresh(c.client, c.clock), Clock: c.clock, Source: sluice.Shared, Batcher: true, Atomic: c.atomic,
			})
		})
		if c.name == "miniredis" {
			_ = c.client.Close()
		}
	}
}

// TestConformanceAlone is the same without coalescing, and without known denials.
func TestConformanceAlone(t *testing.T) {
	clock := new(storetest.Clock)
	for name, client := range map[string]goredis.UniversalClient{
		"redis": redistest.Shared(t).Client(), "cluster": redistest.StartCluster(t, 3).Client(),
	} {
		for _, o := range []Options{{NoCoalescing: true}, {NoKnownDenials: true}, {NoCoalescing: true, NoKnownDenials: true}} {
			t.Run(fmt.Sprintf("%s/coalescing=%t/known=%t", name, !o.NoCoalescing, !o.NoKnownDenials), func(t *testing.T) {
				storetest.Run(t, storetest.Config{
					New: freshWith(client, clock, o), Clock: clock, Source: sluice.Shared, Batcher: true, Atomic: name == "redis",
				})
			})
		}
	}
}

// TestEqual runs the same asks on Redis and in process: the same decisions, field by field.
func TestEqual(t *testing.T) {
	clock := new(storetest.Clock)
	redis := fresh(redistest.Shared(t).Client(), clock)
	inProcess := func(*testing.T) sluice.Store { return local.New(local.Options{Clock: clock.Now}) }
	storetest.Equal(t, clock, redis, inProcess, 20_000)
}

// TestDeclaredKeys runs every script with a #!lua line in front, with which a cluster node refuses keys that were not
// declared.
func TestDeclaredKeys(t *testing.T) {
	client := redistest.StartCluster(t, 1).Client()
	client.AddHook(shebang{})
	clock := new(storetest.Clock)
	storetest.Run(t, storetest.Config{New: fresh(client, clock), Clock: clock, Source: sluice.Shared, Batcher: true})
}

// shebang sends each EVALSHA as an EVAL of the script with a #!lua line.
type shebang struct{}

func (shebang) DialHook(next goredis.DialHook) goredis.DialHook { return next }
func (shebang) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}
func (shebang) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		args := cmd.Args()
		switch args[0] {
		case "evalsha":
			cmd.SetErr(goredis.ErrNoScript)
			return goredis.ErrNoScript
		case "eval":
			args[1] = "#!lua\n" + args[1].(string)
		}
		return next(ctx, cmd)
	}
}
