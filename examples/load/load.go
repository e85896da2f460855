package main

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// second is what one second of load saw.
type second struct{ admitted, refused, other int }

func (s second) plus(o second) second {
	return second{s.admitted + o.admitted, s.refused + o.refused, s.other + o.other}
}

// drive sends requests from so many workers, each as soon as its last was answered, for a duration, and calls report
// at the end of each second with what was answered in it, and once more at the end if that was amid a second. It
// returns the sum. Ending ctx ends it early.
func drive(ctx context.Context, url string, workers int, duration time.Duration, report func(at time.Duration, s second)) second {
	client := newClient(workers)
	defer client.CloseIdleConnections()
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()

	var mu sync.Mutex
	var current second
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				s := ask(ctx, client, url)
				if ctx.Err() != nil && s.other > 0 {
					return // cut off by the end, not an answer
				}
				mu.Lock()
				current = current.plus(s)
				mu.Unlock()
			}
		})
	}

	var total second
	turn := func(at time.Duration) {
		mu.Lock()
		s := current
		current = second{}
		mu.Unlock()
		total = total.plus(s)
		report(at, s)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := time.Duration(1); n*time.Second < duration; n++ {
		select {
		case <-tick.C:
			turn(n * time.Second)
			continue
		case <-ctx.Done():
		}
		break
	}
	wg.Wait()
	turn(min(duration, time.Since(start)))
	return total
}

// ask sends one request and says how it was answered: 2xx is admitted, 429 refused, anything else other.
func ask(ctx context.Context, client *http.Client, url string) second {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return second{other: 1}
	}
	resp, err := client.Do(req)
	if err != nil {
		pause(ctx, 100*time.Millisecond) // a server that is not there is not asked without pause
		return second{other: 1}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // read, so that the connection is used again
	switch {
	case resp.StatusCode/100 == 2:
		return second{admitted: 1}
	case resp.StatusCode == http.StatusTooManyRequests:
		return second{refused: 1}
	}
	return second{other: 1}
}

// newClient keeps one idle connection for each worker: the default of two would open a new one for most requests.
func newClient(workers int) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = workers, workers
	return &http.Client{Transport: t, Timeout: 10 * time.Second}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
