package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Nodes are servers that are measured as one.
type Nodes []*Server

// Stats is the sum of the servers' counters.
func (n Nodes) Stats(ctx context.Context) (Stats, error) {
	var sum Stats
	for _, s := range n {
		st, err := s.Stats(ctx)
		if err != nil {
			return Stats{}, err
		}
		sum.CPU, sum.In, sum.Out, sum.Memory = sum.CPU+st.CPU, sum.In+st.In, sum.Out+st.Out, sum.Memory+st.Memory
		sum.Scripts, sum.ScriptTime = sum.Scripts+st.Scripts, sum.ScriptTime+st.ScriptTime
	}
	return sum, nil
}

// Reset sets the counters of all to zero.
func (n Nodes) Reset(ctx context.Context) error {
	for _, s := range n {
		if err := s.Ask.ConfigResetStat(ctx).Err(); err != nil {
			return fmt.Errorf("server: CONFIG RESETSTAT: %w", err)
		}
	}
	return nil
}

// Flush deletes all keys and leaves the scripts.
func (n Nodes) Flush(ctx context.Context) error {
	for _, s := range n {
		if err := s.Ask.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("server: FLUSHALL: %w", err)
		}
	}
	return nil
}

// Stop ends all.
func (n Nodes) Stop() {
	for _, s := range n {
		s.Stop()
	}
}

// Addrs are the servers' addresses.
func (n Nodes) Addrs() []string {
	var addrs []string
	for _, s := range n {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

const (
	slots       = 16384
	clusterTime = 30 * time.Second // for the nodes of a cluster to agree
)

// StartCluster runs a Redis Cluster of masters without replicas, and returns once its nodes agree. The caller calls Stop.
func StartCluster(ctx context.Context, nodes int) (n Nodes, err error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	defer func() {
		if err != nil {
			n.Stop()
		}
	}()
	for i := range nodes {
		s, err := Start(ctx, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1", "--cluster-node-timeout", "5000")
		if err != nil {
			return n, err
		}
		n = append(n, s)
		if err := s.Ask.ClusterAddSlotsRange(ctx, i*slots/nodes, (i+1)*slots/nodes-1).Err(); err != nil {
			return n, fmt.Errorf("server: slots: %w", err)
		}
		if err := s.Ask.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return n, fmt.Errorf("server: epoch: %w", err)
		}
		host, port, _ := strings.Cut(s.Addr, ":")
		if err := n[0].Ask.ClusterMeet(ctx, host, port).Err(); err != nil {
			return n, fmt.Errorf("server: cluster: %w", err)
		}
	}
	for slices.ContainsFunc(n, func(s *Server) bool { return !s.agrees(ctx, nodes) }) {
		if ctx.Err() != nil {
			return n, fmt.Errorf("server: a cluster of %d did not come up within %v: %w", nodes, clusterTime, ctx.Err())
		}
		time.Sleep(pollTime)
	}
	return n, nil
}

// agrees tells whether a node sees all nodes and all slots served.
func (s *Server) agrees(ctx context.Context, nodes int) bool {
	info := parseInfo(s.Ask.ClusterInfo(ctx).Val())
	return info["cluster_state"] == "ok" && whole(info["cluster_known_nodes"]) == int64(nodes) &&
		whole(info["cluster_slots_ok"]) == slots &&
		strings.Count(s.Ask.ClusterNodes(ctx).Val(), " connected ") == nodes
}
