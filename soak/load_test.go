//go:build linux

package soak

import (
	"context"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// workers send requests at a pace, each its part of the rate. There are so many that those who meet a hung Redis, for
// the store's 50 ms, leave enough others.
const workers = 64

// load is what the fleet is under.
type load struct {
	fleet  *fleet
	web    *http.Client
	envoys []rls.RateLimitServiceClient
	conns  []*grpc.ClientConn
	kinds  []*kind

	start   time.Time
	done    chan struct{}
	running sync.WaitGroup

	mu   sync.Mutex
	errs map[string]int64 // what went wrong, how often; at most 100 texts
}

// kind is one way of asking.
type kind struct {
	name string
	part float64 // of the requests
	ask  func(*load, *rand.Rand, int) error
	took histogram
}

func startLoad(f *fleet, rate int) *load {
	l := &load{
		fleet: f, start: time.Now(), done: make(chan struct{}), errs: map[string]int64{},
		web: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: workers}},
		kinds: []*kind{
			{name: "proxy", part: 0.5, ask: (*load).askProxy},
			{name: "check", part: 0.22, ask: (*load).askCheck},
			{name: "envoy", part: 0.25, ask: (*load).askEnvoy},
			{name: "ready", part: 0.02, ask: (*load).askReady},
			{name: "admin", part: 0.01, ask: (*load).askAdmin},
		},
	}
	for _, p := range f.processes {
		conn, err := grpc.NewClient(p.envoy, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			panic(err) // of arguments
		}
		l.conns = append(l.conns, conn)
		l.envoys = append(l.envoys, rls.NewRateLimitServiceClient(conn))
	}
	for i := range workers {
		l.running.Go(func() { l.work(rand.New(rand.NewPCG(1, uint64(i))), i, workers*time.Second/time.Duration(rate)) })
	}
	return l
}

// work sends a request each period; what is late is made up for.
func (l *load) work(r *rand.Rand, number int, period time.Duration) {
	next := l.start.Add(time.Duration(r.Int64N(int64(period))))
	for i := number; ; i++ {
		if wait := time.Until(next); wait > 0 {
			t := time.NewTimer(wait)
			select {
			case <-l.done:
				t.Stop()
				return
			case <-t.C:
			}
		} else {
			select {
			case <-l.done:
				return
			default:
			}
		}
		next = next.Add(period)
		k := l.pick(r.Float64())
		began := time.Now()
		err := k.ask(l, r, i%len(l.fleet.processes))
		k.took.add(time.Since(began))
		if err != nil {
			l.failed(k.name, err.Error())
		}
	}
}

func (l *load) pick(at float64) *kind {
	for _, k := range l.kinds {
		if at -= k.part; at < 0 {
			return k
		}
	}
	return l.kinds[0]
}

// client is who asks: one address of 200, and an API key. Half of the keys were never seen before, as those of an
// attacker who makes them up, so that all tables of subjects are soon as full as they get; a fifth are one and the same.
func client(r *rand.Rand) (ip, key string) {
	ip = fmt.Sprintf("192.0.2.%d", r.IntN(200))
	switch n := r.IntN(10); {
	case n < 2:
		key = "hot"
	case n < 5:
		key = fmt.Sprint("k", r.IntN(2000))
	default:
		key = fmt.Sprint("x", r.Uint64())
	}
	return ip, key
}

func target(r *rand.Rand) (method, path string) {
	switch n := r.IntN(10); {
	case n < 1:
		return "POST", "/login"
	case n < 2:
		return "GET", "/queue"
	}
	return "GET", "/api/items"
}

func (l *load) askProxy(r *rand.Rand, to int) error {
	method, path := target(r)
	return l.send(r, method, l.fleet.processes[to].listen+path, nil)
}

func (l *load) askCheck(r *rand.Rand, to int) error {
	method, path := target(r)
	return l.send(r, "GET", l.fleet.processes[to].check+"/", http.Header{"X-Original-Method": {method}, "X-Original-Uri": {path}})
}

// send sends a request that is to be let pass, or refused.
func (l *load) send(r *rand.Rand, method, url string, header http.Header) error {
	req, err := http.NewRequestWithContext(context.Background(), method, url, nil)
	if err != nil {
		return err
	}
	if header != nil {
		req.Header = header
	}
	ip, key := client(r)
	req.Header.Set("X-Forwarded-For", ip)
	req.Header.Set("X-API-Key", key)
	return l.do(req, http.StatusOK, http.StatusTooManyRequests)
}

func (l *load) do(req *http.Request, want ...int) error {
	resp, err := l.web.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	for _, status := range want {
		if resp.StatusCode == status {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %s", req.Method, req.URL.Path, resp.Status)
}

func (l *load) askEnvoy(r *rand.Rand, to int) error {
	ip, key := client(r)
	method, path := target(r)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	answer, err := l.envoys[to].ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "soak", Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{
			{Key: "method", Value: method}, {Key: "path", Value: path}, {Key: "remote_address", Value: ip}, {Key: "x-api-key", Value: key},
		},
	}}})
	if err == nil && answer.OverallCode == rls.RateLimitResponse_UNKNOWN {
		err = fmt.Errorf("%v", answer)
	}
	return err
}

func (l *load) askReady(_ *rand.Rand, to int) error {
	return l.fleet.processes[to].ask("GET", "/readyz", nil)
}

func (l *load) askAdmin(r *rand.Rand, to int) error {
	paths := []string{"/healthz", "/metrics", "/top", "/rules", "/explain?path=/api/items&ip=192.0.2.1"}
	req, err := http.NewRequestWithContext(context.Background(), "GET", l.fleet.processes[to].admin+paths[r.IntN(len(paths))], nil)
	if err != nil {
		return err
	}
	return l.do(req, http.StatusOK)
}

func (l *load) failed(where, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := where + ": " + what
	if _, known := l.errs[text]; !known && len(l.errs) >= 100 {
		text = "others"
	}
	l.errs[text]++
}

// stop ends the load, and its connections. It returns how long it was.
func (l *load) stop() time.Duration {
	close(l.done)
	l.running.Wait()
	took := time.Since(l.start)
	l.web.CloseIdleConnections()
	operator.CloseIdleConnections()
	for _, c := range l.conns {
		_ = c.Close()
	}
	return took
}

func (l *load) errors() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]int64{}
	for text, n := range l.errs {
		all[text] = n
	}
	return all
}

// rate is how many requests a second there were.
func (l *load) rate(took time.Duration) float64 {
	n := int64(0)
	for _, k := range l.kinds {
		n += k.took.count()
	}
	return float64(n) / took.Seconds()
}

// line says how it goes.
func (l *load) line() string {
	var all histogram
	for _, k := range l.kinds {
		all.join(&k.took)
	}
	errs := int64(0)
	for _, n := range l.errors() {
		errs += n
	}
	return fmt.Sprintf("%5.0f/s · p50 %v p99 %v · %d errors", l.rate(time.Since(l.start)), ms(all.at(0.5)), ms(all.at(0.99)), errs)
}

// figures are what one kind of requests took, in seconds.
type figures struct {
	Kind  string  `json:"kind"`
	Count int64   `json:"count"`
	P50   float64 `json:"p50_s"`
	P99   float64 `json:"p99_s"`
	P999  float64 `json:"p999_s"`
	Most  float64 `json:"most_s"`
	Late  float64 `json:"share_over_20ms"` // which Envoy would not wait for
}

func (l *load) figures() (all []figures) {
	for _, k := range l.kinds {
		h := &k.took
		all = append(all, figures{k.name, h.count(), h.at(0.5), h.at(0.99), h.at(0.999), time.Duration(h.most.Load()).Seconds(), h.over(20 * time.Millisecond)})
	}
	return all
}

// histogram counts durations within an eighth, in constant memory. It is safe for concurrent use.
type histogram struct {
	buckets [8 * 64]atomic.Int64
	most    atomic.Int64
}

// bucket is the number of leading bits and the three that follow.
func bucket(ns int64) int {
	exp := bits.Len64(uint64(max(ns, 8))) - 4 // so that ns>>exp is 8 to 15
	return exp*8 + int(max(ns, 8)>>exp) - 8
}

// lower is the least of a bucket.
func lower(b int) int64 { return int64(b%8+8) << (b / 8) }

func (h *histogram) add(d time.Duration) {
	h.buckets[bucket(int64(d))].Add(1)
	for {
		most := h.most.Load()
		if int64(d) <= most || h.most.CompareAndSwap(most, int64(d)) {
			return
		}
	}
}

func (h *histogram) join(other *histogram) {
	for i := range other.buckets {
		h.buckets[i].Add(other.buckets[i].Load())
	}
}

func (h *histogram) count() (n int64) {
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

// at is what a part of the durations is within, in seconds.
func (h *histogram) at(part float64) float64 {
	rank, n := int64(part*float64(h.count())), int64(0)
	for i := range h.buckets {
		if n += h.buckets[i].Load(); n > rank {
			return float64(lower(i+1)) / 1e9
		}
	}
	return 0
}

// over is the part that took longer, within a bucket.
func (h *histogram) over(d time.Duration) float64 {
	n := int64(0)
	for i := bucket(int64(d)) + 1; i < len(h.buckets); i++ {
		n += h.buckets[i].Load()
	}
	return float64(n) / float64(max(1, h.count()))
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := range int64(1000) {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for part, want := range map[float64]float64{0.5: 0.5, 0.99: 0.99, 0: 0.001} {
		if got := h.at(part); got < want || got > 1.15*want {
			t.Errorf("%v of 1 ms to 1 s: %v, want %v to an eighth more", part, got, want)
		}
	}
	if got := h.over(500 * time.Millisecond); got < 0.43 || got > 0.51 {
		t.Errorf("%v over 500 ms, want half, less a bucket", got)
	}
	for ns := int64(1); ns < 1<<40; ns = ns*5/4 + 1 {
		if b := bucket(ns); ns >= 8 && (lower(b) > ns || lower(b+1) <= ns) {
			t.Errorf("%d ns is in bucket %d, which begins at %d and ends before %d", ns, b, lower(b), lower(b+1))
		}
	}
}
