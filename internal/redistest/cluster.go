package redistest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	slots       = 16384
	clusterTime = 30 * time.Second // for the nodes of a cluster to agree
)

// Cluster is a Redis Cluster of masters without replicas that belongs to one test.
type Cluster struct {
	Nodes []*Server // in the order of their slots

	tb testing.TB
}

// StartCluster runs that many nodes in cluster mode, splits the slots evenly among them, and returns once every node
// reports cluster_state:ok. The nodes are killed when t ends.
func StartCluster(t testing.TB, nodes int) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clusterTime)
	defer cancel()
	c := &Cluster{tb: t}
	clients := make([]*goredis.Client, nodes)
	for i := range nodes {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--cluster-node-timeout", "5000")
		c.Nodes = append(c.Nodes, s)
		clients[i] = s.Client()
		must(t, clients[i].ClusterAddSlotsRange(ctx, i*slots/nodes, (i+1)*slots/nodes-1).Err())
		must(t, clients[i].Do(ctx, "cluster", "set-config-epoch", i+1).Err())
	}
	for _, s := range c.Nodes[1:] {
		host, port, _ := net.SplitHostPort(s.Addr)
		must(t, clients[0].ClusterMeet(ctx, host, port).Err())
	}
	for i, client := range clients {
		for !agrees(ctx, client, nodes) {
			if ctx.Err() != nil {
				t.Fatalf("redistest: cluster node %d: not ok within %v: %s", i, clusterTime,
					client.ClusterInfo(context.Background()).Val())
			}
			time.Sleep(pollTime)
		}
		_ = client.Close()
	}
	return c
}

// agrees tells whether a node sees all nodes and all slots served.
func agrees(ctx context.Context, client *goredis.Client, nodes int) bool {
	info := parseInfo(client.ClusterInfo(ctx).Val())
	return info["cluster_state"] == "ok" && info["cluster_known_nodes"] == strconv.Itoa(nodes) &&
		info["cluster_slots_ok"] == strconv.Itoa(slots) &&
		strings.Count(client.ClusterNodes(ctx).Val(), "connected") == nodes
}

// Addrs returns the nodes' addresses.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

// Client returns a client of the cluster that is closed when the test ends. Each edit may change its options.
func (c *Cluster) Client(edit ...func(*goredis.ClusterOptions)) *goredis.ClusterClient {
	o := &goredis.ClusterOptions{Addrs: c.Addrs(), MaintNotificationsConfig: quiet()}
	for _, f := range edit {
		f(o)
	}
	client := goredis.NewClusterClient(o)
	c.tb.Cleanup(func() { _ = client.Close() })
	return client
}

func addrs(servers []*Server) []string {
	var list []string
	for _, s := range servers {
		list = append(list, s.Addr)
	}
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
}
