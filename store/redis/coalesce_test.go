package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/store/storetest"
)

// TestBatchesDecideAlike sends random asks in batches, and decides the same asks one by one in Go: the same decisions,
// field by field. Limits are edited, costs differ, keys repeat, other modes stand between charges, some
// callers have gone, and clocks step back.
func TestBatchesDecideAlike(t *testing.T) {
	mini := miniredis.RunT(t)
	miniClient := goredis.NewClient(&goredis.Options{Addr: mini.Addr()})
	defer miniClient.Close()
	asks := 6_000
	if testing.Short() {
		asks = 1_000
	}
	for _, c := range []struct {
		name   string
		client goredis.UniversalClient
		asks   int
	}{
		{"redis", redistest.Shared(t).Client(), 3 * asks},
		{"miniredis", miniClient, asks},
		{"cluster", redistest.StartCluster(t, 3).Client(), asks},
		{"cluster node behind a plain client", redistest.StartCluster(t, 1).Nodes[0].Client(), asks},
	} {
		t.Run(c.name, func(t *testing.T) { batchesDecideAlike(t, c.client, c.asks) })
	}
}

func batchesDecideAlike(t *testing.T, client goredis.UniversalClient, asks int) {
	clock := new(storetest.Clock)
	s := New(client, Options{Prefix: fmt.Sprintf("t%d", prefixes.Add(1)), Timeout: 20 * time.Second, Clock: clock.Now})
	kept := map[string]*algorithm.State{} // by key: what one by one leaves
	_, cluster := client.(*goredis.ClusterClient)
	var all []sluice.Strategy
	for _, l := range []sluice.Limit{{Count: 20, Period: 3 * time.Second}, {Count: 7, Period: 3 * time.Second}, {Count: 1000, Period: time.Second}} {
		for _, st := range strategies(l.Count, l.Period) {
			all = append(all, st)
		}
	}
	src := rand.New(rand.NewPCG(1, uint64(asks)))
	ctx := context.Background()
	// A script that the server does not know is sent again, after others of its batch: here all are known.
	for _, script := range s.everyScript(all) {
		if err := client.ScriptLoad(ctx, script).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.TakeAll(ctx, []sluice.Ask{ // finds out whether the server is one of several
		{Strategy: all[0], Key: sluice.Key{Subject: "a"}}, {Strategy: all[0], Key: sluice.Key{Subject: "b"}},
	}); err != nil {
		t.Fatal(err)
	}
	b := batches.New().(*batch)
	now := time.UnixMicro(1_800_000_000_000_000)
	for done := 0; done < asks; {
		now = now.Add(time.Duration(src.IntN(400)-50) * time.Millisecond)
		clock.Set(now)
		f := &flight{left: s.elapsed()}
		var sent [][]sluice.Ask
		keys, n := 1+src.IntN(40), 1+src.IntN(200)
		for range n {
			a := sluice.Ask{
				Strategy: all[src.IntN(len(all))],
				Key:      sluice.Key{Rule: "r", Subject: fmt.Sprint(src.IntN(keys))},
				N:        []int64{1, 1, 1, 2, int64(src.IntN(30)), 0}[src.IntN(6)],
			}
			r := newRequest()
			r.ctx = ctx
			r.deadline.Store(1)
			asks := []sluice.Ask{a}
			switch src.IntN(20) {
			case 0:
				asks[0].Mode = []sluice.Mode{sluice.Peek, sluice.UpTo, sluice.Reset, sluice.Settle}[src.IntN(4)]
				if asks[0].Mode == sluice.Settle {
					asks[0].N, asks[0].At = int64(src.IntN(9)-6), now.UnixMicro()-int64(src.IntN(1_000_000))
				}
			case 1:
				other := sluice.Ask{Strategy: all[src.IntN(len(all))], Key: a.Key, N: 1}
				asks = append(asks, other)
				if !cluster && !s.sharded.Load() { // one node has all keys
					asks[1].Key.Subject = fmt.Sprint(src.IntN(keys))
				}
				if s.sharded.Load() {
					asks[1].Key.Subject = asks[0].Key.Subject
				}
			case 2:
				r.deadline.Store(0) // has gone
				sent = append(sent, nil)
				f.requests = append(f.requests, r)
				continue
			}
			if len(asks) > 1 || a.Mode != asks[0].Mode {
				r.own = s.ownCallOf(asks)
			} else {
				r.ask = a
				r.script, r.params = a.Strategy.Lua()
				r.key = s.key(a.Key, r.script.Name)
			}
			sent, f.requests = append(sent, asks), append(f.requests, r)
			done++
		}
		s.carry(b, f)
		for i, r := range f.requests {
			asks := sent[i]
			if asks == nil {
				continue
			}
			<-r.ended
			if crossSlot(r.err) { // nothing was executed
				continue
			}
			states := make([]*algorithm.State, len(asks))
			for i, a := range asks {
				script, _ := a.Strategy.Lua()
				k := s.key(a.Key, script.Name)
				if kept[k] == nil || a.Mode == sluice.Reset {
					kept[k] = new(algorithm.State)
				}
				states[i] = kept[k]
			}
			want := sluice.DecideAll(asks, states, now.UnixMicro(), sluice.Shared)
			got, err := sluice.Verdict{Refused: want.Refused}, r.err
			switch {
			case err != nil:
			case r.own != nil:
				got, err = readAny(asks, r.own.keys, r.reply)
			default:
				got.Decision, want.Decision = r.decision, want.Each[0]
			}
			if err != nil || got.Decision != want.Decision || got.Refused != want.Refused {
				t.Fatalf("request %d of %d, %+v:\nbatch %+v, %v\n  one %+v", i, len(f.requests), asks, got.Decision, err, want.Decision)
			}
		}
	}
}

// everyScript returns what a store may send for these strategies.
func (s *Store) everyScript(of []sluice.Strategy) (sources []string) {
	var scripts []*algorithm.Script
	for _, st := range of {
		if a, _ := st.Lua(); !slices.Contains(scripts, a) {
			scripts = append(scripts, a)
			sources = append(sources, s.scripts.charge(a).source, s.scripts.batch(a).source)
		}
	}
	for i, a := range scripts {
		sources = append(sources, s.scripts.any([]*algorithm.Script{a}).source)
		for _, b := range scripts[:i] {
			two := []*algorithm.Script{a, b}
			slices.SortFunc(two, func(a, b *algorithm.Script) int { return strings.Compare(a.Name, b.Name) })
			sources = append(sources, s.scripts.any(two).source)
		}
	}
	return sources
}

// gate is a hook that holds commands back until it is opened, and counts them.
type gate struct {
	sent atomic.Int64
	open atomic.Bool   // further commands pass
	held chan struct{} // closed: those that were held back pass, too
}

func newGate() *gate { return &gate{held: make(chan struct{})} }

func (g *gate) wait() {
	if !g.open.Load() {
		<-g.held
	}
}

func (*gate) DialHook(next goredis.DialHook) goredis.DialHook { return next }
func (g *gate) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		g.sent.Add(1)
		g.wait()
		return next(ctx, cmd)
	}
}
func (g *gate) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		g.sent.Add(int64(len(cmds)))
		g.wait()
		return next(ctx, cmds)
	}
}

// until polls for what other goroutines do.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// queued is how many requests wait in the store's lanes.
func (s *Store) queued() (n int) {
	for i := range s.lanes {
		s.lanes[i].mu.Lock()
		n += len(s.lanes[i].queue)
		s.lanes[i].mu.Unlock()
	}
	return n
}

// carried is how many requests wait in the store's lanes or are away.
func (s *Store) carried() (n int) {
	for i := range s.lanes {
		s.lanes[i].mu.Lock()
		n += len(s.lanes[i].queue)
		for _, f := range s.lanes[i].away {
			n += len(f.requests)
		}
		s.lanes[i].mu.Unlock()
	}
	return n
}

// TestCallersShareARoundTrip lets callers gather while a command is away: those on one key leave in one script call
// that loads and saves once, those on several keys in a few; and they are served in the order in which they came.
func TestCallersShareARoundTrip(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	for _, c := range []struct {
		name    string
		subject func(i int) string
		limit   int64
		calls   int64 // script calls at most, the first one's included
		loads   int64
	}{
		{"one key", func(int) string { return "k" }, 41, 2, 2},
		{"many keys", func(i int) string { return fmt.Sprint(i) }, 1, 1 + 4*2, 1 + 64}, // 4 lanes, by chance of different lengths
	} {
		t.Run(c.name, func(t *testing.T) {
			counted, g := server.Client(), newGate()
			client := server.Client()
			s := New(client, Options{Timeout: 20 * time.Second, Prefix: c.name[:3], NoKnownDenials: true})
			l := sluice.New(s, bucket(c.limit, 5000*24*time.Hour, c.limit), "r")
			for range 2 { // loads both scripts
				var wg sync.WaitGroup
				for i := range 64 {
					wg.Go(func() { _, _ = l.Allow(ctx, c.subject(i)) })
				}
				wg.Wait()
			}
			for i := range 64 {
				if err := l.Reset(ctx, c.subject(i)); err != nil {
					t.Fatal(err)
				}
			}
			client.AddHook(g)
			var mu sync.Mutex
			var allowed []int
			got := redistest.CallsOf(t, counted, func() {
				var wg sync.WaitGroup
				call := func(i int) {
					wg.Go(func() {
						d, err := l.Allow(ctx, c.subject(i))
						if err != nil {
							t.Error(err)
						}
						if d.Allowed {
							mu.Lock()
							allowed = append(allowed, i)
							mu.Unlock()
						}
					})
				}
				call(0)
				until(t, "the first command leaves", func() bool { return g.sent.Load() == 1 })
				for i := 1; i < 65; i++ {
					call(i)
					if c.name == "one key" {
						until(t, "a caller queues", func() bool { return s.queued() == i })
					}
				}
				until(t, "all have come", func() bool { return s.carried() == 65 })
				close(g.held)
				wg.Wait()
			})
			if got["evalsha"] > c.calls && c.name == "one key" || got["hmget"] > c.loads || got["hset"] > c.loads {
				t.Errorf("65 callers: %v: want at most %d evalsha, %d hmget and hset", got, c.calls, c.loads)
			}
			if c.name != "one key" {
				return
			}
			if got["pexpire"] != 2 || got["time"] != 2 {
				t.Errorf("65 callers on one key: %v: want one load, one save and one look at the clock a batch", got)
			}
			if len(allowed) != 41 {
				t.Errorf("%d pass: want 41", len(allowed))
			}
			for _, i := range allowed {
				if i >= 41 {
					t.Errorf("caller %d passed before one who came earlier", i)
				}
			}
		})
	}
}

// TestStuckBatch holds a batch back: those in it keep their own deadlines and cancellations, those behind it leave in the
// next one as soon as patience is over, and when it comes back all is well.
func TestStuckBatch(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	s := New(client, Options{Timeout: 400 * time.Millisecond, NoKnownDenials: true})
	l := sluice.New(s, bucket(1000, 24*time.Hour, 1000), "r")
	ctx := context.Background()
	if _, err := l.Allow(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	g := newGate()
	client.AddHook(g)
	var stuck, behind sync.WaitGroup
	stuck.Go(func() {
		if _, err := l.Allow(ctx, "k"); !errors.Is(err, sluice.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("timeout: %v: want ErrUnavailable and DeadlineExceeded", err)
		}
	})
	until(t, "the batch leaves", func() bool { return g.sent.Load() == 1 })
	for _, c := range []struct {
		ctx       func() (context.Context, context.CancelFunc)
		want, not error
	}{
		{func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 5*time.Millisecond) }, context.DeadlineExceeded, context.Canceled},
		{func() (context.Context, context.CancelFunc) {
			gone, cancel := context.WithCancel(ctx)
			time.AfterFunc(5*time.Millisecond, cancel)
			return gone, cancel
		}, context.Canceled, sluice.ErrUnavailable},
	} {
		own, cancel := c.ctx()
		if _, err := l.Allow(own, "k"); !errors.Is(err, c.want) || errors.Is(err, c.not) {
			t.Errorf("%v: want %v", err, c.want)
		}
		cancel()
	}
	g.open.Store(true) // only the first batch is stuck
	for range 20 {
		behind.Go(func() {
			if d, err := l.Allow(ctx, "k"); err != nil || !d.Allowed {
				t.Errorf("behind a stuck batch: %+v, %v", d, err)
			}
		})
	}
	behind.Wait()
	if n := s.abandoned.Load(); n != 1 {
		t.Errorf("%d batches are left behind: want 1", n)
	}
	stuck.Wait()
	close(g.held)
	until(t, "the stuck batch comes back", func() bool { return s.abandoned.Load() == 0 })
	if d, err := l.Allow(ctx, "k"); err != nil || !d.Allowed {
		t.Errorf("afterwards: %+v, %v", d, err)
	}
	if d, err := l.Peek(ctx, "k", 0); err != nil || d.Remaining != 1000-1-1-20-1 {
		t.Errorf("%+v, %v: want those charged who were sent, once each", d, err)
	}
}

// TestHungServerCoalesced freezes the server: each caller leaves in time, what hangs is bounded, and all is well when the
// server runs on.
func TestHungServerCoalesced(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(func(o *goredis.Options) {
		o.ReadTimeout, o.WriteTimeout, o.PoolSize = time.Minute, time.Minute, 4*maxAbandoned
	})
	s := New(client, Options{Timeout: 40 * time.Millisecond})
	l := sluice.New(s, bucket(1_000_000, 24*time.Hour, 1_000_000), "r")
	ctx := context.Background()
	until(t, "it is warm", func() bool { _, err := l.Allow(ctx, "k"); return err == nil })
	server.Stop()
	var calls, refused atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for refused.Load() == 0 {
				start := time.Now()
				_, err := l.Allow(ctx, "k")
				calls.Add(1)
				if !errors.Is(err, sluice.ErrUnavailable) {
					t.Errorf("hung: %v: want ErrUnavailable", err)
				}
				if took := time.Since(start); took > hurry {
					t.Errorf("hung: %v", took)
				}
				if errors.Is(err, errAbandoned) {
					refused.Add(1)
				}
				if calls.Load() > 1_000_000 {
					t.Error("hanging batches are not bounded")
					return
				}
			}
		})
	}
	wg.Wait()
	if n := s.abandoned.Load(); n != maxAbandoned {
		t.Errorf("%d batches are left behind: want %d", n, maxAbandoned)
	}
	server.Cont()
	until(t, "the server runs on", func() bool {
		_, err := l.Allow(ctx, "other")
		return err == nil && s.abandoned.Load() == 0
	})
	d, err := l.Peek(ctx, "k", 0)
	if spent := 1_000_000 - d.Remaining; err != nil || spent > calls.Load()+1000 {
		t.Errorf("%+v, %v: %d were charged by %d calls", d, err, spent, calls.Load())
	}
}

// TestBatchAtMostOnce loses the replies of whole batches, through a client that retries by default.
func TestBatchAtMostOnce(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr)
	client := goredis.NewClient(&goredis.Options{Addr: proxy.Addr, ReadTimeout: 100 * time.Millisecond, MaxRetries: 3})
	defer client.Close()
	ctx := context.Background()
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1_000, Period: 5000 * 24 * time.Hour, Burst: 1_000})) // none comes back meanwhile
	const keys, callers = 128, 256                                                                              // more keys than a script call has: pipelines
	flood := func(s *Store) (failed int64) {
		var wg sync.WaitGroup
		var n atomic.Int64
		for i := range callers {
			wg.Go(func() {
				if _, err := sluice.New(s, st, "r").Allow(ctx, fmt.Sprint(i%keys)); err != nil {
					n.Add(1)
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	// Two stores at once warm twice the connections that one needs: a retry on a cold one would die in its handshake.
	one, other := New(client, Options{Timeout: 5 * time.Second}), New(client, Options{Timeout: 5 * time.Second})
	proxy.Delay(20 * time.Millisecond)
	for range 3 {
		var wg sync.WaitGroup
		for _, s := range []*Store{one, other} {
			wg.Go(func() {
				if n := flood(s); n != 0 {
					t.Errorf("%d of %d failed", n, callers)
				}
			})
		}
		wg.Wait()
	}
	proxy.Delay(0)
	spent := func() (n int64) {
		direct := sluice.New(New(server.Client(), Options{Timeout: 20 * time.Second}), st, "r")
		for i := range keys {
			d, err := direct.Peek(ctx, fmt.Sprint(i), 0)
			if err != nil {
				t.Fatal(err)
			}
			n += d.Limit - d.Remaining
		}
		return n
	}
	if n := spent(); n != 6*callers {
		t.Fatalf("%d were charged by %d calls", n, 6*callers)
	}
	proxy.DropReplies(true)
	if n := flood(one); n != callers {
		t.Errorf("without replies %d of %d failed", n, callers)
	}
	if n := spent() - 6*callers; n > callers || n < callers/2 {
		t.Errorf("%d were charged by %d calls whose replies were lost: want each once, and most of them", n, callers)
	}
}

// TestSlot compares with a server.
func TestSlot(t *testing.T) {
	client := redistest.StartCluster(t, 1).Client()
	for _, key := range []string{"", "a", "123456789", "sluice:{192.0.2.1}:login:token_bucket", "{}a", "x{a}{b}", "{a", "a}", "{%}:é"} {
		want, err := client.ClusterKeySlot(context.Background(), key).Result()
		if got := slot(key); err != nil || int64(got) != want {
			t.Errorf("slot of %q is %d, %v: want %d", key, got, err, want)
		}
	}
}

// lateReplies is a hook that executes commands and holds back their replies.
type lateReplies struct {
	executed atomic.Int64
	off      atomic.Bool
	release  chan struct{}
}

func (*lateReplies) DialHook(next goredis.DialHook) goredis.DialHook { return next }
func (h *lateReplies) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		off := h.off.Load()
		err := next(ctx, cmd)
		if !off {
			h.executed.Add(1)
			<-h.release
		}
		return err
	}
}
func (*lateReplies) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// TestFailureIsRepeated fails a batch under many callers: all hear of it, and two of them as of something new.
func TestFailureIsRepeated(t *testing.T) {
	ctx := context.Background()
	server := redistest.Start(t)
	client := server.Client()
	g := newGate()
	client.AddHook(g)
	s := New(client, Options{Timeout: 20 * time.Second})
	l := sluice.New(s, bucket(100, time.Hour, 100), "r")
	var first, again atomic.Int64
	var wg sync.WaitGroup
	for i := range 51 {
		wg.Go(func() {
			_, err := l.Allow(ctx, "k")
			var r interface{ Repeated() bool }
			switch {
			case !errors.Is(err, sluice.ErrUnavailable):
				t.Errorf("%v: want ErrUnavailable", err)
			case errors.As(err, &r) && r.Repeated():
				again.Add(1)
			default:
				first.Add(1)
			}
		})
		until(t, "a caller waits", func() bool { return s.carried() == i+1 && g.sent.Load() == 1 })
	}
	server.Kill()
	close(g.held)
	wg.Wait()
	if first.Load() != 3 || again.Load() != 48 { // the first caller left by itself
		t.Errorf("%d heard of it first and %d again: want 3 and 48", first.Load(), again.Load())
	}
}
