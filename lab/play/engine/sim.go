package engine

import "github.com/sluice-go/sluice/algorithm"

// Sim is one run of a setup: lanes beside each other, under the same traffic, and all that the user did to them. It is
// for one goroutine.
type Sim struct {
	first   Setup    // as it began
	actions []action // in order of time
	w       *world
	copies  []*world // to go back to, in order; the first is the beginning
}

// world is everything at one moment.
type world struct {
	setup   Setup
	now     int64 // µs
	decided int64 // requests so far
	up      bool  // Redis is there
	traffic traffic
	burst   arrival // requests that the user fired and that are not yet decided
	left    int64   // how many
	lanes   []*lane
	done    int // actions so far
}

// action is what the user did, after so many requests. Exactly one of the pointers is set.
type action struct {
	at, decided int64
	burst       *int64
	redis       *bool
	change      *Setup
}

// New starts a run, at time 0, before the first request.
func New(s Setup) (*Sim, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	w := &world{setup: s, up: true, traffic: newTraffic(s, -1), lanes: newLanes(s)}
	for _, l := range w.lanes {
		if err := l.fit(s); err != nil {
			return nil, err
		}
	}
	sim := &Sim{first: s, w: w}
	sim.copies = []*world{w.clone()}
	return sim, nil
}

// Setup is the setup as it is now, with what the user has changed.
func (s *Sim) Setup() Setup { return s.w.setup }

// Now is the time, µs.
func (s *Sim) Now() int64 { return s.w.now }

// Decided is how many requests have been decided, each in every lane.
func (s *Sim) Decided() int64 { return s.w.decided }

// Up tells whether Redis is there.
func (s *Sim) Up() bool { return s.w.up }

// Advance runs until a time, µs.
func (s *Sim) Advance(to int64) {
	for s.event(to) {
	}
	s.w.clock(max(to, s.w.now))
}

// Step runs until one more request is decided; false if none will come within a day.
func (s *Sim) Step() bool {
	before, limit := s.w.decided, s.w.now+day*millisecond
	for s.w.decided == before {
		if !s.event(limit) {
			return false
		}
	}
	return true
}

// Back goes to where one request less was decided; false at the beginning.
func (s *Sim) Back() bool {
	target := s.w.decided - 1
	if target < 0 {
		return false
	}
	for len(s.copies) > 1 && s.copies[len(s.copies)-1].decided > target {
		s.copies = s.copies[:len(s.copies)-1]
	}
	s.w = s.copies[len(s.copies)-1].clone()
	for s.w.decided < target && s.event(never-1) {
	}
	return true
}

// Burst fires requests of the first client now, all at once.
func (s *Sim) Burst(size int64) {
	size = min(max(size, 1), 2_000)
	s.act(action{burst: &size})
}

// Redis takes Redis away, or brings it back.
func (s *Sim) Redis(up bool) {
	if up != s.w.up {
		s.act(action{redis: &up})
	}
}

// Change goes on under another setup. States stay, as under an edited limit; traffic is that of the new setup, from now
// on. View, algorithm, span and window stay as they are: another one is another run.
func (s *Sim) Change(to Setup) error {
	to.View, to.Algorithm, to.Span, to.Window = s.first.View, s.first.Algorithm, s.w.setup.SpanMs(), s.w.setup.WindowMs()
	if err := to.Check(); err != nil {
		return err
	}
	for _, name := range Algorithms() {
		if _, err := Strategy(name, to.Limit(name)); err != nil {
			return err
		}
	}
	s.act(action{change: &to})
	return nil
}

// act does something now. What was done later, in a future that the user went back from, is forgotten.
func (s *Sim) act(a action) {
	a.at, a.decided = s.w.now, s.w.decided
	s.actions = append(s.actions[:s.w.done], a)
	s.w.do(a)
}

// event does what comes next, up to a time; false if nothing does.
func (s *Sim) event(limit int64) bool {
	w := s.w
	planned, arrives, acted := w.planned(), w.next().at, int64(never)
	if w.done < len(s.actions) && s.actions[w.done].decided == w.decided {
		acted = s.actions[w.done].at
	}
	switch at := min(planned, acted, arrives); {
	case at > limit:
		return false
	case at == planned:
		w.clock(at)
		w.redis(!w.up)
	case at == acted:
		w.clock(at)
		w.do(s.actions[w.done])
	default:
		s.keepCopy()
		w.decide()
	}
	return true
}

const (
	copyEvery  = 4_096 // requests between copies, at least
	mostCopies = 16
)

// keepCopy remembers the world, now and then. Where there are many copies, every second one is dropped.
func (s *Sim) keepCopy() {
	newest := s.copies[len(s.copies)-1]
	if s.w.decided < newest.decided+copyEvery || !s.w.up {
		return
	}
	if len(s.copies) > 2 { // space them by the run's length
		if s.w.decided-newest.decided < s.w.decided/mostCopies {
			return
		}
	}
	s.copies = append(s.copies, s.w.clone())
	if len(s.copies) > mostCopies {
		kept := s.copies[:1]
		for i := 2; i < len(s.copies); i += 2 {
			kept = append(kept, s.copies[i])
		}
		s.copies = kept
	}
}

// planned is when Redis leaves or comes back by the setup; never if it does not again.
func (w *world) planned() int64 {
	away, back := w.setup.Away*millisecond, w.setup.Back*millisecond
	switch {
	case away > 0 && w.up && w.now < away:
		return away
	case back > 0 && !w.up && w.now < back:
		return back
	}
	return never
}

// next is the request that comes next.
func (w *world) next() arrival {
	if w.left > 0 {
		return w.burst
	}
	return w.traffic.peek()
}

// decide puts the next request to every lane.
func (w *world) decide() {
	a := w.next()
	if w.left > 0 {
		w.left--
	} else {
		w.traffic.skip()
	}
	w.clock(a.at)
	instance := int(w.decided / w.setup.Clients % w.setup.Instances)
	for _, l := range w.lanes {
		l.take(a, instance)
	}
	w.decided++
}

// do is what the user did.
func (w *world) do(a action) {
	w.done++
	switch {
	case a.burst != nil:
		w.burst, w.left = arrival{at: w.now, n: w.setup.Cost}, w.left+*a.burst
	case a.redis != nil:
		w.redis(*a.redis)
	default:
		w.change(*a.change)
	}
}

func (w *world) redis(up bool) {
	w.up = up
	for _, l := range w.lanes {
		if up && l.fleet != nil {
			l.fleet.end(l, w.now)
			l.fleet = nil
		} else if !up && l.fleet == nil {
			l.fleet = newFleet(l, w.setup.Instances, w.now)
		}
	}
}

// change goes on under a setup that Change has checked. An outage under way goes on under the new terms, from the
// level that Redis would have been left with.
func (w *world) change(to Setup) {
	restarted := w.setup.Traffic != to.Traffic || w.setup.Rate != to.Rate || w.setup.Size != to.Size || w.setup.Every != to.Every ||
		w.setup.Cost != to.Cost || w.setup.Clients != to.Clients || w.setup.Period != to.Period || w.setup.Seed != to.Seed || w.setup.Until != to.Until
	w.setup = to
	if restarted {
		w.traffic = newTraffic(to, w.now)
	}
	for _, l := range w.lanes {
		if l.fleet != nil {
			l.fleet.end(l, w.now)
		}
		_ = l.fit(to) // Change has built the same strategies
		if l.fleet != nil {
			l.fleet = newFleet(l, to.Instances, w.now)
		}
	}
}

// clock moves every lane to a time.
func (w *world) clock(to int64) {
	w.now = to
	for _, l := range w.lanes {
		l.clock(to, w.up)
	}
}

func (w *world) clone() *world {
	c := *w
	c.lanes = make([]*lane, len(w.lanes))
	for i, l := range w.lanes {
		c.lanes[i] = l.clone()
	}
	return &c
}

// Lane is what one lane has come to.
type Lane struct {
	Name, Algorithm string
	Limit           algorithm.Limit
	Figures         Figures
	Level           float64 // units that the first client has spent, counted or waiting; NaN where nothing is kept
	Last            *Record // the last decision; nil before the first
	strategy        algorithm.Strategy
}

// Lanes are the lanes as they are now.
func (s *Sim) Lanes() []Lane {
	lanes := make([]Lane, 0, len(s.w.lanes))
	for _, l := range s.w.lanes {
		v := Lane{
			Name: l.name, Algorithm: l.algorithm, Limit: l.strategy.Limit(), Figures: l.figures,
			Level: l.level(s.w.now), strategy: l.strategy,
		}
		v.Figures.Keys = l.held(s.w.now)
		if s.w.decided > 0 {
			last := l.last
			v.Last = &last
		}
		lanes = append(lanes, v)
	}
	return lanes
}

// Timeline calls f with each column of a lane, from old to new, and when it began, µs.
func (s *Sim) Timeline(lane int, f func(began int64, c Bin)) { s.w.lanes[lane].bins.each(f) }
