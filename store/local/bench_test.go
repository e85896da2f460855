package local_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
)

// addresses are n subjects in an order that is not that of their making.
func addresses(n int) []string {
	list := make([]string, n)
	for i := range list {
		k := i * 7919 % n // a prime that divides no n
		list[i] = fmt.Sprintf("10.%d.%d.%d", k>>16, k>>8&255, k&255)
	}
	return list
}

func BenchmarkTake(b *testing.B) {
	st := bucket(1000, time.Second, 1000)
	for _, keys := range []int{1, 10_000, 1_000_000} {
		subjects := addresses(keys)
		fill := func() (s *local.Store, take func(i int)) {
			s = local.New(local.Options{})
			take = func(i int) {
				a := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "bench", Subject: subjects[i%keys]}, N: 1}
				if _, err := s.Take(context.Background(), a); err != nil {
					b.Fatal(err)
				}
			}
			for i := range keys {
				take(i)
			}
			return s, take
		}
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			_, take := fill()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				take(i)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", keys), func(b *testing.B) {
			_, take := fill()
			start := new(atomic.Int64)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				for i := int(start.Add(1)) * 7919; p.Next(); i++ {
					take(i)
				}
			})
		})
	}
}

func BenchmarkTakeAll(b *testing.B) {
	s := local.New(local.Options{})
	asks := []sluice.Ask{
		sluice.New(s, bucket(1000, time.Second, 1000), "each").Ask("203.0.113.7", 1),
		sluice.New(s, fixed(1_000_000, time.Minute), "all").Ask("", 1),
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.TakeAll(context.Background(), asks); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory reports what a key takes: the subject's own bytes, at most 13 here, are a part of it.
func BenchmarkMemory(b *testing.B) {
	for _, keys := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			each := 0.0
			for b.Loop() {
				each = bytesPerKey(b, keys)
			}
			b.ReportMetric(each, "bytes/key")
		})
	}
}

func bytesPerKey(t testing.TB, keys int) float64 {
	subjects := addresses(keys)
	before := heap()
	s := newTry(t, keys)
	st := bucket(1, time.Hour, 5)
	for _, subject := range subjects {
		s.charge(st, subject, 1)
	}
	taken := heap() - before
	runtime.KeepAlive(subjects)
	if s.Len() != keys {
		t.Fatalf("Len is %d, want %d", s.Len(), keys)
	}
	return float64(taken) / float64(keys)
}

// A key takes little, and a Store that is empty again takes what an empty one does.
func TestMemoryPerKey(t *testing.T) {
	for _, keys := range []int{1000, 10_000} {
		if each := bytesPerKey(t, keys); each > 130 {
			t.Errorf("a key takes %.0f bytes with %d of them, want at most 130", each, keys)
		}
	}
	const keys = 20_000
	subject := strings.Repeat("s", 16)
	before := heap()
	s, st := newTry(t, 0), bucket(1, time.Second, 1)
	for i := range keys {
		s.charge(st, fmt.Sprintf("%s%d", subject, i), 1)
	}
	for range 200 {
		s.Advance(time.Second)
		s.left(st, subject)
	}
	if left := heap() - before; s.Len() != 0 || left > 50_000 {
		t.Errorf("%d keys and %d bytes are left when all have ended, want none and at most 50,000", s.Len(), left)
	}
}
