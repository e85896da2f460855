package chaos

import (
	"bufio"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/redistest"
)

var cut = strings.Cut

// quick makes a client that does not retry and keeps to deadlines, as redis.Open's does.
func quick(o *goredis.Options) {
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
}

// onServer is a fault of one plain server.
func onServer(hit, heal func(t *testing.T, s *redistest.Server, c *goredis.Client), counts bool) func(*testing.T) scene {
	return func(t *testing.T) scene {
		s := redistest.Start(t)
		c := s.Client()
		sc := scene{
			client: func(int) goredis.UniversalClient { return s.Client(quick) },
			hit:    func() { hit(t, s, c) }, heal: func() { heal(t, s, c) },
		}
		if counts {
			sc.server = c
		}
		return sc
	}
}

// onProxy is a fault of the network.
func onProxy(hit, heal func(p *redistest.Proxy)) func(*testing.T) scene {
	return func(t *testing.T) scene {
		s := redistest.Start(t)
		p := redistest.StartProxy(t, s.Addr)
		return scene{
			client: func(int) goredis.UniversalClient {
				o := &goredis.Options{Addr: p.Addr}
				quick(o)
				c := goredis.NewClient(o)
				t.Cleanup(func() { _ = c.Close() })
				return c
			},
			hit: func() { hit(p) }, heal: func() { heal(p) }, server: s.Client(),
		}
	}
}

type server = func(*testing.T, *redistest.Server, *goredis.Client)

// do sends commands, which must work.
func do(commands ...string) server {
	return func(t *testing.T, _ *redistest.Server, c *goredis.Client) {
		t.Helper()
		for _, line := range commands {
			var args []any
			for _, word := range strings.Fields(line) {
				args = append(args, word)
			}
			if err := c.Do(context.Background(), args...).Err(); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

func nothing(*testing.T, *redistest.Server, *goredis.Client) {}

func faults() []fault {
	return []fault{
		{name: "none", scene: onServer(nothing, nothing, true), closed: true},
		{name: "killed, restarted empty", wipes: 1, scene: onServer(
			func(_ *testing.T, s *redistest.Server, _ *goredis.Client) { s.Kill() },
			func(_ *testing.T, s *redistest.Server, _ *goredis.Client) { s.Restart() }, false)},
		{name: "stopped and continued", scene: onServer(
			func(_ *testing.T, s *redistest.Server, _ *goredis.Client) { s.Stop() },
			func(_ *testing.T, s *redistest.Server, _ *goredis.Client) { s.Cont() }, true)},
		{name: "restarted at once, empty", wipes: 1, scene: onServer(
			func(_ *testing.T, s *redistest.Server, _ *goredis.Client) { s.Restart() }, nothing, false)},
		{name: "flushed", wipes: 1, closed: true, scene: onServer(do("flushall"), nothing, true)},
		{name: "scripts flushed", closed: true, scene: onServer(do("script flush"), nothing, true)},
		{name: "OOM", scene: onServer(do("config set maxmemory-policy noeviction", "config set maxmemory 1"), do("config set maxmemory 0"), true)},
		{name: "READONLY, roles swapped", wipes: 1, scene: swapped},
		{name: "MASTERDOWN", wipes: 1, scene: onServer(
			do("config set replica-serve-stale-data no", "replicaof 127.0.0.1 1"), do("replicaof no one"), true)},
		{name: "BUSY", scene: busy},
		{name: "NOAUTH", scene: onServer(
			do("config set requirepass secret", "client kill type normal skipme yes"), func(t *testing.T, _ *redistest.Server, c *goredis.Client) {
				if err := c.ConfigSet(context.Background(), "requirepass", "").Err(); err != nil {
					t.Error(err)
				}
			}, true)},
		{name: "maxclients", scene: onServer(do("config set maxclients 1", "client kill type normal skipme yes"), do("config set maxclients 1000"), true)},
		{name: "WRONGTYPE", wipes: 1, closed: true, scene: onServer(
			do("set sluice:{k}:chaos:token_bucket x"), do("del sluice:{k}:chaos:token_bucket"), true)},
		{name: "LOADING", scene: answering("-LOADING Redis is loading the dataset in memory")},
		{name: "CLUSTERDOWN", scene: answering("-CLUSTERDOWN The cluster is down")},
		{name: "TRYAGAIN", scene: answering("-TRYAGAIN Multiple keys request during rehashing of slot")},
		{name: "half an answer's shape", scene: answering("*6\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n$-1\r\n$1\r\n1"), closed: true},
		{name: "sentinel promotes a replica", wipes: 1, scene: sentinel},
		{name: "cluster: slot moved", scene: slotMoved},
		{name: "cluster: node lost and back", wipes: 1, scene: nodeLost},
		{name: "ring: shard lost and back", wipes: 2, scene: shardLost},
		{name: "callers' clocks step 1 s", ahead: 2, closed: true, scene: clocksStep},
		{name: "network: 20 ms slower", scene: onProxy(
			func(p *redistest.Proxy) { p.Delay(20 * time.Millisecond) }, func(p *redistest.Proxy) { p.Delay(0) })},
		{name: "network: slower than the timeout", scene: onProxy(
			func(p *redistest.Proxy) { p.Delay(2 * timeout) }, func(p *redistest.Proxy) { p.Delay(0) })},
		{name: "network: black hole", scene: onProxy(
			func(p *redistest.Proxy) { p.BlackHole(true) }, func(p *redistest.Proxy) { p.BlackHole(false); p.Reset() })},
		{name: "network: replies lost", scene: onProxy(
			func(p *redistest.Proxy) { p.DropReplies(true) }, func(p *redistest.Proxy) { p.DropReplies(false); p.Reset() })},
		{name: "network: refused", scene: onProxy(
			func(p *redistest.Proxy) { p.Refuse(true); p.Reset() }, func(p *redistest.Proxy) { p.Refuse(false) })},
		{name: "network: replies cut in half", scene: onProxy(
			func(p *redistest.Proxy) { p.CutReplies(20) }, func(p *redistest.Proxy) { p.CutReplies(-1); p.Reset() })},
		{name: "network: reset again and again", scene: resets},
	}
}

// swapped turns the server behind one address into a replica of another, as a failover behind a fixed name does.
func swapped(t *testing.T) scene {
	a, b := redistest.Start(t), redistest.Start(t)
	host, port, _ := net.SplitHostPort(b.Addr)
	c := a.Client()
	return scene{
		client: func(int) goredis.UniversalClient { return a.Client(quick) },
		hit:    func() { do("replicaof "+host+" "+port)(t, a, c) },
		heal:   func() { do("replicaof no one")(t, a, c) },
	}
}

// busy lets a script of somebody else run on and on.
func busy(t *testing.T) scene {
	s := redistest.Start(t, "--lua-time-limit", "50")
	c, killer := s.Client(func(o *goredis.Options) { o.ReadTimeout = time.Minute }), s.Client()
	var wg sync.WaitGroup
	return scene{
		client: func(int) goredis.UniversalClient { return s.Client(quick) },
		hit: func() {
			wg.Go(func() { _ = c.Eval(context.Background(), "while true do end", nil).Err() }) // ends when it is killed
		},
		heal: func() {
			for killer.ScriptKill(context.Background()).Err() != nil {
				time.Sleep(10 * time.Millisecond)
			}
			wg.Wait()
		},
		server: killer,
	}
}

// answering puts a server in between that answers scripts with one reply, whatever it is.
func answering(reply string) func(*testing.T) scene {
	return func(t *testing.T) scene {
		s := redistest.Start(t)
		var lie atomic.Bool
		front := newFront(t, s.Addr, func(command string, _ time.Time) string {
			if lie.Load() && strings.HasPrefix(command, "eval") {
				return reply + "\r\n"
			}
			return ""
		})
		return scene{
			client: func(int) goredis.UniversalClient {
				o := &goredis.Options{Addr: front}
				quick(o)
				c := goredis.NewClient(o)
				t.Cleanup(func() { _ = c.Close() })
				return c
			},
			hit: func() { lie.Store(true) }, heal: func() { lie.Store(false) }, server: s.Client(),
		}
	}
}

// newFront is a proxy that reads commands one at a time and may answer them itself, by their connection's age too.
func newFront(t *testing.T, upstream string, answer func(command string, born time.Time) string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	keep := func(c net.Conn) { mu.Lock(); open[c] = true; mu.Unlock() }
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			keep(c)
			wg.Go(func() {
				defer c.Close()
				born := time.Now()
				up, err := net.Dial("tcp", upstream)
				if err != nil {
					return
				}
				keep(up)
				defer up.Close()
				wg.Go(func() { _, _ = io.Copy(c, up); _ = c.Close() })
				in := bufio.NewReader(c)
				for {
					raw, name, err := readCommand(in)
					if err != nil {
						return
					}
					if text := answer(name, born); text != "" {
						_, err = io.WriteString(c, text)
					} else {
						_, err = up.Write(raw)
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}

// readCommand returns one command as it was sent, and its name in lower case.
func readCommand(in *bufio.Reader) (raw []byte, name string, err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	if err != nil {
		return nil, "", err
	}
	raw = line
	for i := range n {
		size, err := in.ReadBytes('\n')
		if err != nil {
			return nil, "", err
		}
		length, err := strconv.Atoi(strings.TrimSpace(string(size[1:])))
		if err != nil {
			return nil, "", err
		}
		body := make([]byte, length+2)
		if _, err := io.ReadFull(in, body); err != nil {
			return nil, "", err
		}
		raw = append(append(raw, size...), body...)
		if i == 0 {
			name = strings.ToLower(string(body[:length]))
		}
	}
	return raw, name, nil
}

// aged makes connections that are open now answer READONLY for ever, as those to an old master do; new ones are good.
func aged(t *testing.T) scene {
	s := redistest.Start(t)
	var cutoff atomic.Pointer[time.Time]
	front := newFront(t, s.Addr, func(command string, born time.Time) string {
		if c := cutoff.Load(); c != nil && born.Before(*c) && strings.HasPrefix(command, "eval") {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return ""
	})
	return scene{
		client: func(int) goredis.UniversalClient {
			o := &goredis.Options{Addr: front}
			quick(o)
			c := goredis.NewClient(o)
			t.Cleanup(func() { _ = c.Close() })
			return c
		},
		hit: func() { now := time.Now(); cutoff.Store(&now) }, heal: func() {}, server: s.Client(),
	}
}

// H5: after a failover pooled connections answered READONLY for ever. They are dropped, and new ones serve.
func TestCase_H5_OldConnectionsAreDropped(t *testing.T) {
	suffer(t, fault{name: "READONLY on old connections", scene: aged})
}

// sentinel has a master, a replica and a sentinel, and loses the master.
func sentinel(t *testing.T) scene {
	master, replica := redistest.Start(t), redistest.Start(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	do("replicaof "+host+" "+port)(t, replica, replica.Client())
	addr := redistest.StartSentinel(t, master, "m")
	watch := goredis.NewSentinelClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { _ = watch.Close() })
	waitFor(t, "the sentinel knows the replica", func() bool {
		r, err := watch.Replicas(context.Background(), "m").Result()
		return err == nil && len(r) == 1 && r[0]["master-link-status"] == "ok"
	})
	return scene{
		client: func(int) goredis.UniversalClient {
			c := goredis.NewFailoverClient(&goredis.FailoverOptions{
				MasterName: "m", SentinelAddrs: []string{addr}, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true,
				DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, PoolTimeout: patience,
			})
			t.Cleanup(func() { _ = c.Close() })
			return c
		},
		hit: master.Kill, heal: func() {},
	}
}

// slotMoved hands the key's slot to another node, key by key, as a reshard does.
func slotMoved(t *testing.T) scene {
	ctx := context.Background()
	cluster := redistest.StartCluster(t, 2)
	c := cluster.Client()
	nodes := []*goredis.Client{cluster.Nodes[0].Client(), cluster.Nodes[1].Client()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	slot, err := c.ClusterKeySlot(ctx, "{k}").Result()
	must(err)
	from := 0
	if slot >= 8192 {
		from = 1
	}
	id := func(n int) string {
		v, err := nodes[n].Do(ctx, "cluster", "myid").Text()
		must(err)
		return v
	}
	return scene{
		client: func(int) goredis.UniversalClient {
			return cluster.Client(func(o *goredis.ClusterOptions) {
				o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
				o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
			})
		},
		hit: func() {
			must(nodes[1-from].Do(ctx, "cluster", "setslot", slot, "importing", id(from)).Err())
			must(nodes[from].Do(ctx, "cluster", "setslot", slot, "migrating", id(1-from)).Err())
			keys, err := nodes[from].ClusterGetKeysInSlot(ctx, int(slot), 100).Result()
			must(err)
			host, port, _ := net.SplitHostPort(cluster.Nodes[1-from].Addr)
			for _, k := range keys {
				must(nodes[from].Migrate(ctx, host, port, k, 0, 5*time.Second).Err())
			}
		},
		heal: func() {
			must(nodes[1-from].Do(ctx, "cluster", "setslot", slot, "node", id(1-from)).Err())
			must(nodes[from].Do(ctx, "cluster", "setslot", slot, "node", id(1-from)).Err())
		},
	}
}

// nodeLost kills the node of the key and brings it back empty: with full coverage required, the whole cluster is down
// as soon as the others notice.
func nodeLost(t *testing.T) scene {
	cluster := redistest.StartCluster(t, 3)
	slot, err := cluster.Client().ClusterKeySlot(context.Background(), "{k}").Result()
	if err != nil {
		t.Fatal(err)
	}
	node := cluster.Nodes[int(slot)*3/16384]
	return scene{
		client: func(int) goredis.UniversalClient {
			return cluster.Client(func(o *goredis.ClusterOptions) {
				o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
				o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
			})
		},
		hit: node.Kill, heal: node.Restart,
	}
}

// shardLost kills the server of a ring that holds the key, which moves to the other until it is back.
func shardLost(t *testing.T) scene {
	ring := redistest.StartRing(t, 2)
	var lost *redistest.Server
	return scene{
		client: func(int) goredis.UniversalClient {
			return ring.Client(func(o *goredis.RingOptions) {
				o.MaxRetries, o.ContextTimeoutEnabled = -1, true
				o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = patience, patience, patience, patience
				o.HeartbeatFrequency = 100 * time.Millisecond
			})
		},
		hit: func() {
			for _, s := range ring.Servers {
				if s.Client().Exists(context.Background(), "sluice:{k}:chaos:token_bucket").Val() == 1 {
					lost = s
				}
			}
			lost.Kill()
		},
		heal: func() { lost.Restart() },
	}
}

// clocksStep has each caller bring its own clock, and steps one of them forth and back.
func clocksStep(t *testing.T) scene {
	s := redistest.Start(t)
	var step atomic.Int64
	return scene{
		client: func(int) goredis.UniversalClient { return s.Client(quick) },
		clock: func(instance int) func() time.Time {
			return func() time.Time {
				if instance == 0 {
					return time.Now().Add(time.Duration(step.Load()))
				}
				return time.Now()
			}
		},
		hit:    func() { step.Store(int64(time.Second)) },
		heal:   func() { step.Store(-int64(time.Second)) },
		server: s.Client(),
	}
}

// resets breaks all connections every 50 ms.
func resets(t *testing.T) scene {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	sc := onProxy(func(p *redistest.Proxy) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
					p.Reset()
				}
			}
		})
	}, func(*redistest.Proxy) { close(stop); wg.Wait() })(t)
	return sc
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it takes too long until %s", what)
		}
	}
}
