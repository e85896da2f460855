package service

import (
	"context"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/redis"
)

// slots tells whether the limits of one subject can be taken together where keys are spread over servers, and whether
// scripts name all keys that they touch.
func (d *doctor) slots(ctx context.Context) {
	_, spread := d.client.(*goredis.ClusterClient)
	switch {
	case !d.version.cluster:
		d.ok("slots", "one server has all keys")
		return
	case !spread:
		d.fail("slots", "the server is one node of a cluster, and most keys are elsewhere", "begin the URL with redis+cluster://")
		return
	}
	if state := d.clusterState(ctx); state != "" && state != "ok" {
		d.fail("slots", "cluster_state is "+state, "see CLUSTER INFO: some slots have no server")
		return
	}
	strict := "" // from Redis 7 on, a script that says what it is may touch declared keys alone
	if first, _, _ := strings.Cut(d.version.version, "."); d.version.name == "valkey" || number(first) >= 7 {
		strict = "#!lua\n"
	}
	who := subject()
	var asks []sluice.Ask
	for i, st := range d.strategies() {
		ask := d.ask(st, who)
		ask.Key.Rule += strconv.Itoa(i)
		asks = append(asks, ask)
	}
	defer func() {
		for _, ask := range asks {
			ask.Mode = sluice.Reset
			_, _ = d.store.Take(ctx, ask)
		}
	}()
	if _, err := d.store.TakeAll(ctx, asks); err != nil {
		d.fail("slots", "limits of one subject, taken together: "+err.Error(), "a proxy may be parting them: see docs/operations.md, proxies")
		return
	}
	for _, ask := range asks {
		_, params := ask.Strategy.Lua()
		args := []any{"", 1}
		for _, p := range params {
			args = append(args, p)
		}
		if err := d.client.Eval(ctx, strict+redis.Source(ask.Strategy), []string{d.store.KeyOf(ask)}, args...).Err(); err != nil {
			d.fail("slots", err.Error(), "the script touches a key that it does not declare")
			return
		}
	}
	d.ok("slots", "a cluster: a subject's keys share a slot, and scripts declare them")
}

// clusterState is "ok", or what is wrong with the cluster; "" where the user may not ask.
func (d *doctor) clusterState(ctx context.Context) string {
	if d.node == nil {
		return "no master has the doctor's slot"
	}
	text, err := d.node.ClusterInfo(ctx).Result()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if state, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster_state:"); ok {
			return state
		}
	}
	return ""
}
