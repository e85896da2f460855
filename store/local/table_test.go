package local

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
)

// Subjects whose hashes are equal have entries of their own.
func TestTableEqualHashes(t *testing.T) {
	const hash = 1 << 40
	var table table[int]
	for i := range 100 {
		e := table.add(hash, fmt.Sprint(i))
		e.value, e.expires = i, 1
	}
	for i := range 100 {
		if e := table.find(hash, fmt.Sprint(i)); e == nil || e.value != i || e.subject != fmt.Sprint(i) {
			t.Errorf("subject %d: %+v", i, e)
		}
	}
	if e := table.find(hash, "100"); e != nil {
		t.Errorf("a subject that was never added has an entry: %v", e.value)
	}
}

// A decision is not made on the entry of another subject of the same hash, nor on a dead one.
func TestTakeOnEqualHashes(t *testing.T) {
	st := sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: time.Hour, Burst: 5}))
	ctx, key := context.Background(), sluice.Key{Rule: "rule", Subject: "a"}
	s, b := New(Options{}), NewBuckets(BucketsOptions{})
	ask := sluice.Ask{Strategy: st, Key: key, N: 2}
	ours, theirs := s.rule(&ask), b.rule(&ask)
	hash, hashB := s.hash("a"), b.hash("a")
	impostor := ours.tables[tableNo(hash)].add(hash, "impostor")
	impostor.expires = 1 << 60
	other := theirs.tables[tableNo(hashB)].add(hashB, "impostor")
	other.value, other.expires = new(bucket), 1<<60
	for name, store := range map[string]sluice.Store{"Store": s, "Buckets": b} {
		for _, want := range []int64{3, 1} {
			if d, err := store.Take(ctx, ask); err != nil || d.Remaining != want {
				t.Errorf("%s: %d left, %v; want %d", name, d.Remaining, err, want)
			}
		}
		if d, err := store.Take(ctx, sluice.Ask{Strategy: st, Key: key, Mode: sluice.Reset}); err != nil || d.Remaining != 5 {
			t.Errorf("%s: Reset: %+v, %v", name, d, err)
		}
		if d, err := store.Take(ctx, ask); err != nil || d.Remaining != 3 { // its entry is dead
			t.Errorf("%s: %d left after Reset, %v; want 3", name, d.Remaining, err)
		}
	}
	if impostor.value != [3]int64{} || other.value.limit.Count != 0 {
		t.Error("another subject was charged")
	}
}

// A table is no larger than what is alive in it warrants: neither after many have died, nor after a sweep.
func TestTableShrinks(t *testing.T) {
	var table table[int]
	hash := func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }
	for i := range 100_000 {
		e := table.add(hash(i), fmt.Sprint(i))
		e.expires = 1
		if i >= 100 {
			e.kill() // a key that is charged, and given back
		}
	}
	if n := len(table.slots.Load().tags); n > 512 {
		t.Errorf("%d slots for 100 entries", n)
	}
	for i := range 10_000 {
		table.add(hash(i), fmt.Sprint(i)).expires = int64(i)
	}
	if n := table.drop(8999); n != 9000 {
		t.Errorf("%d dropped, want 9000", n)
	}
	if n := len(table.slots.Load().tags); n != 2048 || table.taken != 1000 {
		t.Errorf("%d slots, %d taken for 1000 entries", n, table.taken)
	}
	for i := range 10_000 {
		if e := table.find(hash(i), fmt.Sprint(i)); (e != nil) != (i > 8999) {
			t.Fatalf("entry %d: %v", i, e)
		}
	}
	if n := table.drop(10_000); n != 1000 || table.slots.Load() != nil {
		t.Errorf("%d dropped in the end, %v", n, table.slots.Load())
	}
}

// Tables that grow, shrink and are swept under the feet of callers lose no charge: each key admits its burst, once.
func TestTablesUnderLoad(t *testing.T) {
	const goroutines, keys, burst = 8, 3000, 3
	var mu sync.Mutex
	now := time.Unix(1_700_000_000, 0)
	s := New(Options{Clock: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(100 * time.Microsecond) // every key in passing has ended before the next sweep
		return now
	}})
	lasting := sluice.New(s, sluice.Must(tokenbucket.New(sluice.Limit{Count: 1, Period: 10_000 * time.Hour, Burst: burst})), "rule")
	passing := sluice.New(s, sluice.Must(tokenbucket.New(sluice.Limit{Count: 1000, Period: time.Second, Burst: 10})), "rule")
	var charged [keys]int64
	var count sync.Mutex
	var done sync.WaitGroup
	for g := range goroutines {
		done.Go(func() {
			mine := [keys]int64{}
			for i := range 2 * keys {
				k := (i*7919 + g*keys/goroutines) % keys
				d, err := lasting.Allow(t.Context(), fmt.Sprint(k))
				if err != nil {
					t.Error(err)
				}
				mine[k] += d.Charged
				subject := fmt.Sprintf("passing %d of %d", i, g)
				if d, err := passing.Allow(t.Context(), subject); err != nil || !d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
				if i%3 == 0 {
					if err := passing.Reset(t.Context(), subject); err != nil {
						t.Error(err)
					}
				}
			}
			count.Lock()
			defer count.Unlock()
			for k, n := range mine {
				charged[k] += n
			}
		})
	}
	done.Wait()
	for k, n := range charged {
		if n != burst {
			t.Errorf("key %d: %d units admitted, want %d", k, n, burst)
		}
	}
	if n := s.Len(); n < keys || n > keys+2*goroutines*keys {
		t.Errorf("Len is %d", n)
	}
	now = now.Add(time.Minute)
	for range 200 {
		now = now.Add(time.Second)
		if _, err := lasting.Peek(t.Context(), "0", 0); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Len(); n != keys {
		t.Errorf("%d keys are left, want %d", n, keys)
	}
}
