package httplimit_test

import (
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

// apiKeys makes the same random API keys each time: 24 bytes in base64.
type apiKeys struct{ random *rand.Rand }

func newAPIKeys() apiKeys { return apiKeys{rand.New(rand.NewPCG(13, 14))} }

func (k apiKeys) next() string {
	var b [24]byte
	for i := range b {
		b[i] = byte(k.random.Uint32())
	}
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// status is a ResponseWriter that keeps the status alone: a million recorders would be most of the test.
type status struct {
	header http.Header
	code   int
}

func (s *status) Header() http.Header         { return s.header }
func (s *status) WriteHeader(code int)        { s.code = code }
func (s *status) Write(b []byte) (int, error) { return len(b), nil }

// asker sends requests that differ in their API key alone, 2 of which pass in an hour for each key, on a clock that
// stands still.
type asker struct {
	h    http.Handler
	r    *http.Request
	w    status
	next counter
}

func newAsker(t *testing.T, store *local.Store) *asker {
	a := &asker{r: httptest.NewRequest("GET", "/", nil), w: status{header: http.Header{}}}
	rules := newRules(t, policy.RuleConfig{Name: "api", Match: "/", Limits: []policy.LimitConfig{limit(t, "token_bucket", "2/h", "header:X-API-Key")}})
	a.h = wrap(rules, store, &a.next)
	return a
}

// passes tells whether a request with key is let through.
func (a *asker) passes(key string) bool {
	a.r.Header["X-Api-Key"] = []string{key}
	clear(a.w.header)
	a.w.code = http.StatusOK
	a.h.ServeHTTP(&a.w, a.r)
	return a.w.code == http.StatusOK
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A million random API keys are a million clients, each with its own burst and no more, at less than 200 bytes each.
func TestMustLimitAMillionKeys(t *testing.T) {
	store := local.New(local.Options{Clock: newClock().Now})
	a := newAsker(t, store)
	a.passes("warm")
	before := heap()
	keys := newAPIKeys()
	for i := range manyKeys {
		if !a.passes(keys.next()) {
			t.Fatalf("key %d is refused at its first request", i)
		}
	}
	each := (heap() - before) / manyKeys
	t.Logf("%d keys, %d bytes each", manyKeys, each)
	if each > 200 && !raceEnabled {
		t.Errorf("a key takes %d bytes, want at most 200", each)
	}
	if n := store.Len(); n != manyKeys+1 || store.Overflows() != 0 {
		t.Errorf("%d states and %d overflows: want one state a key", n, store.Overflows())
	}
	keys = newAPIKeys()
	for i := range manyKeys {
		key := keys.next()
		if second := a.passes(key); !second || i%100 == 0 && a.passes(key) {
			t.Fatalf("key %d: second request passes %v: want the second and not the third", i, second)
		}
	}
	runtime.KeepAlive(store)
}

// With room for a tenth of them, those that find room keep what they have, and all others share one burst: memory stays
// bounded, and a flood of new keys frees nobody.
func TestMustBoundAFloodOfKeys(t *testing.T) {
	const room = manyKeys / 10
	store := local.New(local.Options{Clock: newClock().Now, MaxKeys: room})
	a := newAsker(t, store)
	a.passes("victim")
	a.passes("victim")
	before := heap()
	keys := newAPIKeys()
	own, shared := 0, 0
	for i := range manyKeys {
		switch passes := a.passes(keys.next()); {
		case passes && i < room-1:
			own++
		case passes:
			shared++
		}
		if i%1000 == 0 && a.passes("victim") {
			t.Fatalf("the victim is freed after %d new keys", i+1)
		}
	}
	grown := heap() - before
	t.Logf("%d keys in room for %d: %d bytes in all", manyKeys, room, grown)
	if grown > 200*room && !raceEnabled {
		t.Errorf("the heap grew by %d bytes: want at most 200 for each of %d keys", grown, room)
	}
	if own != room-1 || shared != 2 {
		t.Errorf("%d keys pass with states of their own, %d that share one: want %d and one burst of 2", own, shared, room-1)
	}
	if n := store.Len(); n != room+1 {
		t.Errorf("%d states, want %d and the one that is shared", n, room)
	}
	if n := store.Overflows(); n != manyKeys-(room-1) {
		t.Errorf("Overflows is %d, want %d", n, manyKeys-(room-1))
	}
	keys = newAPIKeys()
	for i := range room - 1 {
		if key := keys.next(); !a.passes(key) || a.passes(key) {
			t.Fatalf("key %d has lost its state, or has too much: want one request left", i)
		}
	}
	runtime.KeepAlive(store)
}
