package main

import (
	"context"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/load"
	"github.com/sluice-go/sluice/bench/server"
)

// growth measures what the long form has beyond callers and patterns: the algorithms' scripts, more keys, more nodes, and an application
// beside the limiter.
func (s *session) growth(ctx context.Context) error {
	for _, w := range []load.Work{load.Hot(16), load.Refused(16)} {
		k, err := s.work(ctx, server.Nodes{s.redis}, load.Renamed(w, "algorithms-"+w.Name, w.Text+", by algorithm"), contender.Algorithms())
		if err != nil {
			return err
		}
		s.report.Algorithms = append(s.report.Algorithms, k)
	}
	var two []contender.Contender
	for _, c := range contender.All() {
		if c.Name == contender.Base || c.Name == contender.Main {
			two = append(two, c)
		}
	}
	for _, keys := range []int{1000, 10_000, 100_000, 1_000_000} {
		w := load.Renamed(load.Many(128, keys), "keys-"+load.Thousands(keys), "128 callers, "+load.Thousands(keys)+" keys")
		k, err := s.work(ctx, server.Nodes{s.redis}, w, two)
		if err != nil {
			return err
		}
		s.report.Sizes = append(s.report.Sizes, k)
	}
	s.progress.done(2 * millionTime)
	if err := s.cluster(ctx); err != nil {
		return err
	}
	var err error
	s.report.Traffic, err = load.Application(ctx, s.redis, 128, load.Plan{Rounds: s.Rounds, Round: s.Round, Step: s.progress.step})
	return err
}

// cluster measures three nodes beside one. All share the core of redis-server, so that it shows what spreading over
// nodes costs, not what more cores give.
func (s *session) cluster(ctx context.Context) error {
	const nodes = 3
	s.progress.step("a cluster", "starting")
	cluster, err := server.StartCluster(ctx, nodes)
	if err != nil {
		return err
	}
	defer cluster.Stop()
	s.progress.done(clusterTime)
	if s.core >= 0 {
		for _, n := range cluster {
			if err := server.Pin(n.PID, s.core); err != nil {
				return err
			}
		}
	}
	w := load.Renamed(load.Many(128, 10_000), "cluster-128", "128 callers, 10,000 keys, one node and a cluster of three on the same core")
	k, err := s.work(ctx, append(server.Nodes{s.redis}, cluster...), w, contender.Clusters(s.redis.Addr, cluster.Addrs()))
	if err != nil {
		return err
	}
	s.report.Cluster = &k
	return nil
}
