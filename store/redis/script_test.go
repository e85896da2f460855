package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/leaky"
	"github.com/sluice-go/sluice/algorithm/slidingwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/internal/redistest"
)

// strategies are the four algorithms under one limit.
func strategies(count int64, period time.Duration) map[string]sluice.Strategy {
	w, b := sluice.Limit{Count: count, Period: period}, sluice.Limit{Count: count, Period: period, Burst: count}
	return map[string]sluice.Strategy{
		"token_bucket":   sluice.Must(tokenbucket.New(b)),
		"leaky_bucket":   sluice.Must(leaky.New(b)),
		"fixed_window":   sluice.Must(fixedwindow.New(w)),
		"sliding_window": sluice.Must(slidingwindow.New(w)),
	}
}

// store returns a store with a prefix of its own on the shared server.
func testStore(t *testing.T, clock func() time.Time) *Store {
	return New(redistest.Shared(t).Client(), Options{
		Prefix: fmt.Sprintf("t%d", prefixes.Add(1)), Timeout: 20 * time.Second, Clock: clock,
	})
}

// TestSHA pins the text of every script: other languages hold it, and processes of two versions may share a key. A
// change here is a decision. Rewrite the file with -update.
func TestSHA(t *testing.T) {
	var b strings.Builder
	var all []*algorithm.Script
	for name, st := range strategies(1, time.Second) {
		script, _ := st.Lua()
		if script.Name != name {
			t.Errorf("script of %s is named %s", name, script.Name)
		}
		all = append(all, script)
	}
	slices.SortFunc(all, func(a, b *algorithm.Script) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range all {
		fmt.Fprintf(&b, "one %s %s\n", a.Name, newComposed(composeOne(a)).sha)
		fmt.Fprintf(&b, "batch %s %s\n", a.Name, newComposed(composeBatch(a)).sha)
	}
	for set := 1; set < 1<<len(all); set++ {
		var some []*algorithm.Script
		var names []string
		for i, a := range all {
			if set&(1<<i) != 0 {
				some, names = append(some, a), append(names, a.Name)
			}
		}
		fmt.Fprintf(&b, "any %s %s\n", strings.Join(names, "+"), newComposed(composeAny(some)).sha)
	}
	for _, a := range all {
		fmt.Fprintf(&b, "plain %s %s\n", a.Name, newComposed(composePlain(a)).sha)
	}
	const golden = "testdata/sha.txt"
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("scripts have changed; got\n%swant\n%s", b.String(), want)
	}
}

// TestOneCommand counts what a decision costs on the server: one EVALSHA, TIME and HMGET in it; and HSET and PEXPIRE
// where it charges, no write where it does not.
func TestOneCommand(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	store := New(client, Options{Timeout: 20 * time.Second})
	ctx := context.Background()
	for name, st := range strategies(2, 24*time.Hour) {
		l := sluice.New(store, st, name)
		call := func(want bool) {
			t.Helper()
			d, err := l.Allow(ctx, "k")
			if err != nil || d.Allowed != want {
				t.Fatalf("%s: %+v, %v: want allowed %v", name, d, err, want)
			}
		}
		call(true) // loads the script
		for _, c := range []struct {
			do   func()
			want map[string]int64
		}{
			{func() { call(true) }, map[string]int64{"evalsha": 1, "time": 1, "hmget": 1, "hset": 1, "pexpire": 1}},
			{func() { call(false) }, map[string]int64{"evalsha": 1, "time": 1, "hmget": 1}},
		} {
			got := redistest.CallsOf(t, client, c.do)
			delete(got, "info")
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: commands %v: want %v", name, got, c.want)
			}
		}
	}
	// Several limits of one request are one command too.
	ours := strategies(100, time.Hour)
	asks := []sluice.Ask{
		{Strategy: ours["token_bucket"], Key: sluice.Key{Rule: "a", Subject: "s"}, N: 1},
		{Strategy: ours["fixed_window"], Key: sluice.Key{Rule: "b", Subject: "global"}, N: 1},
	}
	take := func() {
		if v, err := sluice.TakeAll(ctx, store, asks); err != nil || !v.Allowed {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	take()
	if got := redistest.CallsOf(t, client, take); got["evalsha"] != 1 || got["hset"] != 2 {
		t.Errorf("TakeAll of two: commands %v", got)
	}
	// A peek writes nothing.
	peek := func() {
		if _, err := sluice.New(store, ours["token_bucket"], "a").Peek(ctx, "s", 1); err != nil {
			t.Fatal(err)
		}
	}
	peek()
	if got := redistest.CallsOf(t, client, peek); got["evalsha"] != 1 || got["hset"] != 0 || got["pexpire"] != 0 {
		t.Errorf("Peek: commands %v", got)
	}
}

// TestServerTime holds each script to 0.1 ms on the server in the median of its rounds: some twenty times what it
// takes, so that only a change of kind fails it.
func TestServerTime(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	store := New(client, Options{Timeout: 20 * time.Second})
	ctx := context.Background()
	for name, st := range strategies(1_000_000, time.Second) {
		l := sluice.New(store, st, name)
		var took []float64
		for range 9 {
			if err := client.ConfigResetStat(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			for i := range 100 {
				if _, err := l.Allow(ctx, fmt.Sprint(i%10)); err != nil {
					t.Fatal(err)
				}
			}
			fields := server.Info("commandstats")["cmdstat_evalsha"]
			_, rest, _ := strings.Cut(fields, "usec_per_call=")
			text, _, _ := strings.Cut(rest, ",")
			var usec float64
			if _, err := fmt.Sscan(text, &usec); err != nil {
				t.Fatalf("%q: %v", fields, err)
			}
			took = append(took, usec)
		}
		slices.Sort(took)
		t.Logf("%s: %.1f µs on the server", name, took[len(took)/2])
		if took[len(took)/2] >= 100 {
			t.Errorf("%s: %.1f µs on the server: want below 100", name, took[len(took)/2])
		}
	}
}

func TestKey(t *testing.T) {
	long := strings.Repeat("x", longPart+1)
	sum := sha256.Sum256([]byte(long))
	s := New(redistest.Shared(t).Client(), Options{})
	for _, c := range []struct {
		key  sluice.Key
		want string
	}{
		{sluice.Key{Rule: "api", Subject: "192.0.2.1"}, "sluice:{192.0.2.1}:api:token_bucket"},
		{sluice.Key{Rule: "api", Subject: ""}, "sluice:{%}:api:token_bucket"},
		{sluice.Key{Rule: "", Subject: "%"}, "sluice:{%25}:%:token_bucket"},
		{sluice.Key{Rule: "a/b", Subject: "a{b}c"}, "sluice:{a%7Bb%7Dc}:a/b:token_bucket"},
		{sluice.Key{Rule: "r", Subject: "\x00\n é"}, "sluice:{%00%0A%20%C3%A9}:r:token_bucket"},
		{sluice.Key{Rule: "r", Subject: "AZaz09._:@/-"}, "sluice:{AZaz09._:@/-}:r:token_bucket"},
		{sluice.Key{Rule: "r", Subject: long[1:]}, "sluice:{" + long[1:] + "}:r:token_bucket"},
		{sluice.Key{Rule: "r", Subject: long}, "sluice:{%%" + hex.EncodeToString(sum[:]) + "}:r:token_bucket"},
	} {
		if got := s.key(c.key, "token_bucket"); got != c.want {
			t.Errorf("key of %.40q is %.100s: want %.100s", c.key, got, c.want)
		}
	}
}

func FuzzKey(f *testing.F) {
	f.Add("a", "b:c", "a:b", "c")
	f.Add("}:", "{", "", "}:{")
	f.Add("%", "", "%25", "%%")
	s := &Store{prefix: "p"}
	f.Fuzz(func(t *testing.T, rule1, subject1, rule2, subject2 string) {
		a, b := sluice.Key{Rule: rule1, Subject: subject1}, sluice.Key{Rule: rule2, Subject: subject2}
		x, y := s.key(a, "n"), s.key(b, "n")
		if (a == b) != (x == y) {
			t.Errorf("%q and %q are %s and %s", a, b, x, y)
		}
		if strings.Count(x, "{") != 1 || strings.Count(x, "}") != 1 || strings.Contains(x, "{}") {
			t.Errorf("key of %q has no single, filled hash tag: %s", a, x)
		}
	})
}
