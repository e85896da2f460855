package failover

// What the fallback charged is remembered, so that a Settle goes to the store that made the charge: any charge that is
// not among these is the primary's. The memory is bounded, and the oldest are dropped, with a watermark: a Settle for
// a charge from the time of those dropped may be either store's.

// A part's charges are kept in sets by hash: 64 parts of 128 sets of 8, 65,536 charges in 1.2 MB, taken when the
// fallback charges.
const (
	chargeSets = 128
	chargeWays = 8
)

type chargeSet struct {
	kept    [chargeWays]charge // the zero charge: none
	next    int                // the oldest
	full    bool
	first   int64 // At of the earliest charge, µs
	dropped int64 // At of the latest that was dropped, µs, if some was
	drops   bool
}

type charge struct {
	id uint64
	at int64 // µs
}

func newCharge(h hash, at int64) charge {
	x := (uint64(h) ^ uint64(at)) * 0x9e3779b97f4a7c15
	x ^= x >> 32
	return charge{x * 0xff51afd7ed558ccd, at}
}

// charged remembers a charge of the fallback, in a locked part.
func (p *markPart) charged(h hash, at int64) {
	made := newCharge(h, at)
	if p.charges == nil {
		p.charges = new([chargeSets]chargeSet)
	}
	s := &p.charges[made.id%chargeSets]
	if s.has(made) { // several in one µs
		return
	}
	oldest := &s.kept[s.next]
	if s.full {
		s.dropped, s.drops = max(s.dropped, oldest.at), true
	} else if s.first = min(s.first, at); s.next == 0 {
		s.first = at
	}
	*oldest = made
	if s.next++; s.next == chargeWays {
		s.next, s.full = 0, true
	}
}

// charger tells whether the fallback made a charge, and whether that is sure.
func (m *memory) charger(h hash, at int64) (fallback, sure bool) {
	p, made := m.part(h), newCharge(h, at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.charges == nil {
		return false, true
	}
	s := &p.charges[made.id%chargeSets]
	if s.has(made) {
		return true, true
	}
	return false, !s.drops || at < s.first || at > s.dropped
}

func (s *chargeSet) has(made charge) bool {
	n := s.next
	if s.full {
		n = chargeWays
	}
	for _, c := range s.kept[:n] {
		if c == made {
			return true
		}
	}
	return false
}
