package redis

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/internal/redistest"
)

// BenchmarkTake decides for many callers at once; bench/ compares with peers.
func BenchmarkTake(b *testing.B) {
	server := redistest.Start(b)
	subjects := make([]string, 10_000)
	for i := range subjects {
		subjects[i] = fmt.Sprintf("subject-%d", i)
	}
	for _, keys := range []int{1, len(subjects)} {
		for _, callers := range []int{1, 128} {
			b.Run(fmt.Sprintf("keys=%d/callers=%d", keys, callers), func(b *testing.B) {
				s, err := Open("redis://"+server.Addr, Options{Timeout: time.Second})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				l := sluice.New(s, bucket(100_000_000, time.Second, 100_000_000), "bench")
				ctx := context.Background()
				b.ReportAllocs()
				var wg sync.WaitGroup
				for c := range callers {
					wg.Go(func() {
						for i := c; i < b.N; i += callers {
							if d, err := l.Allow(ctx, subjects[i*7919%keys]); err != nil || !d.Allowed {
								b.Error(d, err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

// BenchmarkKnownDenial repeats a denial.
func BenchmarkKnownDenial(b *testing.B) {
	s, err := Open("redis://"+redistest.Start(b).Addr, Options{Timeout: time.Second})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l := sluice.New(s, bucket(1, 24*time.Hour, 1), "bench")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Allow(ctx, "subject-1"); err != nil {
			b.Fatal(err)
		}
	}
}
