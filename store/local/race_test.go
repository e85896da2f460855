package local_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/store/local"
)

// Calls that lock many keys, in any order, with room for all and for few, end, and admit what the limits allow.
func TestConcurrentTakeAll(t *testing.T) {
	const goroutines, rounds, keys, burst = 32, 300, 8, 500
	for _, maxKeys := range []int{0, 3} {
		s := local.New(local.Options{MaxKeys: maxKeys})
		var limiters []*sluice.Limiter
		for _, rule := range []string{"one", "two"} {
			for _, st := range all(burst, 5000*24*time.Hour) {
				limiters = append(limiters, sluice.New(s, st, rule))
			}
		}
		var charged [8][keys]atomic.Int64 // by limiter and subject
		var done sync.WaitGroup
		for g := range goroutines {
			done.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(g), 1))
				for range rounds {
					var asks []sluice.Ask
					var places [][2]int
					for range 1 + rnd.IntN(6) {
						l, k := rnd.IntN(len(limiters)), rnd.IntN(keys)
						asks = append(asks, limiters[l].Ask(fmt.Sprint(k), 1+rnd.Int64N(2)))
						places = append(places, [2]int{l, k})
					}
					switch rnd.IntN(8) {
					case 0:
						if d, err := s.Take(t.Context(), asks[0]); err != nil {
							t.Error(err)
						} else {
							charged[places[0][0]][places[0][1]].Add(d.Charged)
						}
						continue
					case 1:
						asks[0].Mode = sluice.Peek
						if _, err := s.Take(t.Context(), asks[0]); err != nil || s.Len() > 3+len(limiters) && maxKeys == 3 {
							t.Errorf("%v; %d states", err, s.Len())
						}
						continue
					}
					v, err := s.TakeAll(t.Context(), asks)
					if err != nil {
						t.Error(err)
						return
					}
					for i, at := range places {
						charged[at[0]][at[1]].Add(v.Each[i].Charged)
					}
				}
			})
		}
		done.Wait()
		for i, l := range limiters {
			together := int64(0)
			for k := range keys {
				n := charged[i][k].Load()
				together += n
				d, err := l.Peek(t.Context(), fmt.Sprint(k), 0)
				if err != nil {
					t.Fatal(err)
				}
				if maxKeys == 0 && d.Remaining != burst-n || n > burst {
					t.Errorf("limiter %d, subject %d: %d charged, %d left of %d", i, k, n, d.Remaining, burst)
				}
			}
			if together == 0 || maxKeys == 3 && together > (3+1)*burst {
				t.Errorf("limiter %d: %d charged with room for %d keys", i, together, maxKeys)
			}
		}
		if maxKeys == 3 && (s.Len() > 3+len(limiters) || s.Overflows() == 0) {
			t.Errorf("Len is %d, Overflows %d", s.Len(), s.Overflows())
		}
	}
}

// Many callers with new keys at once take no more room than there is, and share one allowance beyond.
func TestConcurrentFlood(t *testing.T) {
	const rounds, maxKeys, goroutines, each, burst = 200, 3, 8, 4, 7
	for range rounds {
		s := local.New(local.Options{MaxKeys: maxKeys})
		l := sluice.New(s, bucket(burst, 5000*24*time.Hour, burst), "rule")
		var charged atomic.Int64
		var ready, done sync.WaitGroup
		ready.Add(goroutines)
		for g := range goroutines {
			done.Go(func() {
				ready.Done()
				ready.Wait()
				for i := range each {
					d, err := l.AllowN(t.Context(), fmt.Sprintf("%d of %d", i, g), burst)
					if err != nil {
						t.Error(err)
					}
					charged.Add(d.Charged)
					if n := s.Len(); n > maxKeys+1 {
						t.Errorf("%d states with room for %d keys", n, maxKeys)
					}
				}
			})
		}
		done.Wait()
		// A burst for each key that finds room, and one that the others share. It may be less: a caller that holds room
		// for a moment, and is then denied as one of the others, sends a rival to the shared state.
		got := charged.Load()
		if got > (maxKeys+1)*burst || got < 2*burst || got%burst != 0 {
			t.Errorf("%d units admitted, want at most %d", got, (maxKeys+1)*burst)
		}
		if kept := got / burst; int64(s.Len()) != kept || s.Overflows() == 0 {
			t.Errorf("Len is %d with %d bursts admitted, Overflows %d", s.Len(), kept, s.Overflows())
		}
	}
}
