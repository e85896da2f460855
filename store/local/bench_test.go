package local_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
)

func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1, 10_000} {
		subjects := make([]string, keys)
		for i := range subjects {
			subjects[i] = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
		}
		st := bucket(1000, time.Second, 1000)
		take := func(b *testing.B, s *local.Store, subject string) {
			a := sluice.Ask{Strategy: st, Key: sluice.Key{Rule: "bench", Subject: subject}, N: 1}
			if _, err := s.Take(context.Background(), a); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := local.New(local.Options{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				take(b, s, subjects[i%keys])
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", keys), func(b *testing.B) {
			s, start := local.New(local.Options{}), new(atomic.Int64)
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for i := int(start.Add(1)) * 7919; p.Next(); i++ {
					take(b, s, subjects[i%keys])
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
