package server

import (
	"context"
	"os"
	"runtime"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// Counters are of what happened since they were reset.
func TestStats(t *testing.T) {
	ctx := t.Context()
	s, err := Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	nodes := Nodes{s}
	if err := s.Ask.Eval(ctx, "return 1", []string{"k"}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := nodes.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Ask.EvalSha(ctx, goredis.NewScript("return 1").Hash(), []string{"k"}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	st, err := nodes.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if st.Scripts != 3 || st.In < 3*80 || st.Out < 3*4 || st.Memory <= 0 || st.CPU <= 0 {
		t.Errorf("%+v: want 3 scripts, and bytes, memory and time", st)
	}
}

func TestCluster(t *testing.T) {
	n, err := StartCluster(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: n.Addrs()})
	defer c.Close()
	for _, k := range []string{"a", "b", "c", "d"} {
		if err := c.Set(t.Context(), k, 1, 0).Err(); err != nil {
			t.Error(err)
		}
	}
	if err := n.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	t.Setenv("REDIS_SERVER", "no-such-server")
	if s, err := Start(context.Background()); err == nil {
		s.Stop()
		t.Error("started a server that there is not")
	}
}

// Pinning leaves one CPU, and releasing gives all back.
func TestPin(t *testing.T) {
	before := CPUs()
	if len(before) < 2 {
		t.Skipf("it needs two CPUs, and there are %d", len(before))
	}
	procs := runtime.GOMAXPROCS(0)
	release, err := PinCallers(before[0])
	if err != nil {
		t.Fatal(err)
	}
	if now := CPUs(); len(now) != 1 || now[0] != before[0] || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("CPUs %v and GOMAXPROCS %d, want %d and 1", now, runtime.GOMAXPROCS(0), before[0])
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if now := CPUs(); len(now) != len(before) || runtime.GOMAXPROCS(0) != procs {
		t.Errorf("CPUs %v and GOMAXPROCS %d, want %v and %d", now, runtime.GOMAXPROCS(0), before, procs)
	}
	if err := Pin(os.Getpid(), 1<<9); err == nil {
		t.Error("pinned to a CPU that there is not")
	}
}
