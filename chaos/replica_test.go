package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/redis"
)

// TestReplica compares a replica with its master after 10,000 decisions: the same words and the same end of every key.
// Scripts replicate by their effects, so a replica never runs a clock of its own.
func TestReplica(t *testing.T) {
	ctx := context.Background()
	master, replica := redistest.Start(t), redistest.Start(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	m, r := master.Client(), replica.Client()
	do("replicaof "+host+" "+port)(t, replica, r)
	waitFor(t, "the replica follows", func() bool { return replica.Info("replication")["master_link_status"] == "up" })

	store := redis.New(m, redis.Options{Timeout: 10 * time.Second})
	w, b := sluice.Limit{Count: 50, Period: time.Hour}, sluice.Limit{Count: 50, Period: time.Hour, Burst: 50}
	limits := []sluice.Strategy{
		sluice.Must(tokenbucket.New(b)), sluice.Must(leaky.New(b)), sluice.Must(fixedwindow.New(w)), sluice.Must(slidingwindow.New(w)),
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		l := sluice.New(store, limits[random.IntN(len(limits))], "r")
		if _, err := l.AllowN(ctx, fmt.Sprint(random.IntN(40)), random.Int64N(4)); err != nil {
			t.Fatal(err)
		}
	}
	offset := func(s *redistest.Server, field string) string { return s.Info("replication")[field] }
	waitFor(t, "the replica has caught up", func() bool {
		return offset(replica, "slave_repl_offset") == offset(master, "master_repl_offset")
	})
	keys, err := m.Keys(ctx, "*").Result()
	if err != nil || len(keys) < 100 {
		t.Fatal(len(keys), err)
	}
	for _, k := range keys {
		if x, y := fmt.Sprint(m.HGetAll(ctx, k).Val()), fmt.Sprint(r.HGetAll(ctx, k).Val()); x != y {
			t.Errorf("%s: master %s, replica %s", k, x, y)
		}
		x, y := m.PExpireTime(ctx, k).Val(), r.PExpireTime(ctx, k).Val()
		if x != y || x <= 0 {
			t.Errorf("%s: ends at %v on the master, at %v on the replica", k, x, y)
		}
	}
	t.Logf("%d keys after 10,000 decisions: equal", len(keys))
}
