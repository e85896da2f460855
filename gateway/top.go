package gateway

import (
	"cmp"
	"container/heap"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice"
)

const (
	topSlots   = 5           // minutes that Top looks back on, the current one too
	topSlot    = time.Minute // of a slot
	topTracked = 1000        // subjects that a slot counts
	topShown   = 100         // that List returns
)

// Top counts denials by subject over the last five minutes, in bounded memory, whatever the number of subjects: each
// minute has room for 1,000, and a new one takes the place of the least denied, with its count (the Space-Saving sketch
// of Metwally, Agrawal and El Abbadi, 2005). A subject that got more than a thousandth of a minute's denials is always
// among them. It is an [sluice.Observer], safe for concurrent use. The zero Top is ready.
type Top struct {
	mu    sync.Mutex
	slots [topSlots]slot
}

// Denied is how often one subject was denied under one limit.
type Denied struct {
	Limit   string `json:"limit"`            // Key.Rule: the rule, or rule/limit
	Subject string `json:"subject"`          // first 128 bits of the SHA-256 of Key.Subject, in hex
	Count   int64  `json:"denied"`           // at most this many
	TooMany int64  `json:"too_many_by_most"` // Count may exceed the truth by this much: what it took over; 0: it is exact
}

// HashSubject returns what Top shows for a subject, as Key.Subject has it.
func HashSubject(subject string) string {
	h := hashOf(subject)
	return hex.EncodeToString(h[:])
}

type subjectHash [16]byte

func hashOf(subject string) subjectHash {
	sum := sha256.Sum256([]byte(subject))
	return subjectHash(sum[:16])
}

type topKey struct {
	limit   string
	subject subjectHash
}

// Observe counts a denial: of an ask that charges, not of one that looks.
func (t *Top) Observe(_ context.Context, a sluice.Ask, d sluice.Decision, err error, _ time.Duration) {
	if refuses(a, d, err) {
		t.deny(topKey{a.Key.Rule, hashOf(a.Key.Subject)}, time.Now())
	}
}

// refuses tells whether the ask is the one that refused. Those that it held back have no RetryAfter.
func refuses(a sluice.Ask, d sluice.Decision, err error) bool {
	return err == nil && !d.Allowed && d.RetryAfter > 0 && a.Mode == sluice.Charge
}

func (t *Top) deny(k topKey, now time.Time) {
	minute := now.Unix() / int64(topSlot/time.Second)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.slots[minute%topSlots]
	if s.minute != minute {
		s.begin(minute)
	}
	s.add(k)
}

// List returns the 100 subjects that were denied most in the last five minutes, the most denied first.
func (t *Top) List() []Denied { return t.list(time.Now()) }

func (t *Top) list(now time.Time) []Denied {
	minute := now.Unix() / int64(topSlot/time.Second)
	type sum struct{ count, over int64 }
	sums := map[topKey]sum{}
	t.mu.Lock()
	for i := range t.slots {
		s := &t.slots[i]
		if s.minute > minute-topSlots && s.minute <= minute {
			for _, e := range s.byCount {
				was := sums[e.key]
				sums[e.key] = sum{was.count + e.count, was.over + e.over}
			}
		}
	}
	t.mu.Unlock()
	all := make([]Denied, 0, len(sums))
	for k, s := range sums {
		all = append(all, Denied{Limit: k.limit, Subject: hex.EncodeToString(k.subject[:]), Count: s.count, TooMany: s.over})
	}
	slices.SortFunc(all, func(a, b Denied) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Subject, b.Subject))
	})
	return all[:min(len(all), topShown)]
}

// slot counts the denials of one minute.
type slot struct {
	minute  int64
	byKey   map[topKey]*counter
	byCount leastFirst
}

type counter struct {
	key         topKey
	count, over int64 // over: of count, what it took over
	at          int   // in the heap
}

func (s *slot) begin(minute int64) {
	if s.byKey == nil {
		s.byKey = make(map[topKey]*counter)
	}
	clear(s.byKey)
	s.minute, s.byCount = minute, s.byCount[:0]
}

func (s *slot) add(k topKey) {
	c := s.byKey[k]
	switch {
	case c != nil:
	case len(s.byCount) < topTracked:
		c = &counter{key: k}
		s.byKey[k] = c
		heap.Push(&s.byCount, c)
	default:
		c = s.byCount[0]
		delete(s.byKey, c.key)
		c.key, c.over = k, c.count
		s.byKey[k] = c
	}
	c.count++
	heap.Fix(&s.byCount, c.at)
}

// leastFirst is a heap.Interface.
type leastFirst []*counter

func (h leastFirst) Len() int           { return len(h) }
func (h leastFirst) Less(i, j int) bool { return h[i].count < h[j].count }
func (h leastFirst) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *leastFirst) Push(x any) {
	c := x.(*counter)
	c.at = len(*h)
	*h = append(*h, c)
}
func (h *leastFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
