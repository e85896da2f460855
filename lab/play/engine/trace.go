package engine

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"

	"github.com/sluice-go/sluice/algorithm"
)

// Trace is an experiment whose subject is the way to Redis and back: every command of every client, on a model of a
// server with one thread. It is computed at once, and shown up to a time.
type Trace struct {
	Lanes []TraceLane
	End   int64 // µs: when the last reply has arrived
}

// TraceLane is one way to do it.
type TraceLane struct {
	Name  string
	Words []string // names of the integers of Trip.Before and After
	Trips []Trip   // in the order in which the server ran them
}

// Trip is one message to the server and its reply.
type Trip struct {
	Client        int    // -1: the one whose script may be slow
	Kind          string // read, write, script, or slow
	Outcome       string // allowed, denied; conflict: a write that WATCH refused; or "", a read that a write follows
	Commands      int64
	Sent, Got     int64           // µs: at the client
	Served, Left  int64           // µs: the server begins, and is done
	Before, After algorithm.State // in Redis
}

// TraceFigures are a trace lane's figures up to a time.
type TraceFigures struct {
	Allowed, Denied, Conflicts, Commands int64
	Median, P99, Worst                   int64 // µs: from Sent to Got, of clients other than the slow script's
}

const (
	commandCost = 10 // µs that the server spends on one command
	scriptCost  = 20 // µs that it spends on a script that reads no list
	// EntryCost is the time of a script for each entry that it reads, ns: the model's assumption. sluice lab block measures it.
	EntryCost = 200
	traceTime = second // how long the traffic of the view block lasts
)

// NewTrace runs the views race and block.
func NewTrace(s Setup) (*Trace, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	st, err := Strategy(s.Algorithm, s.Limit(s.Algorithm))
	if err != nil {
		return nil, err
	}
	t := &Trace{}
	names := []string{"naive", "watch", "lua"}
	if s.View == "block" {
		names = []string{"constant", "linear"}
	}
	script, _ := st.Lua()
	for _, name := range names {
		m := &server{setup: s, strategy: st, how: name, states: map[int]algorithm.State{}}
		m.random.Seed(uint64(s.Seed), 0)
		m.run()
		for _, trip := range m.trips {
			t.End = max(t.End, trip.Got)
		}
		t.Lanes = append(t.Lanes, TraceLane{Name: name, Words: script.Words, Trips: m.trips})
	}
	return t, nil
}

// Next returns when the server next begins something after a time, in any lane; false if never.
func (t *Trace) Next(after int64) (int64, bool) {
	next, found := int64(never), false
	for _, l := range t.Lanes {
		i, _ := slices.BinarySearchFunc(l.Trips, after+1, func(trip Trip, at int64) int { return cmp.Compare(trip.Served, at) })
		if i < len(l.Trips) {
			next, found = min(next, l.Trips[i].Served), true
		}
	}
	return next, found
}

// Previous returns when the server last began something before a time, in any lane; false if never.
func (t *Trace) Previous(before int64) (int64, bool) {
	last, found := int64(-1), false
	for _, l := range t.Lanes {
		i, _ := slices.BinarySearchFunc(l.Trips, before, func(trip Trip, at int64) int { return cmp.Compare(trip.Served, at) })
		if i > 0 {
			last, found = max(last, l.Trips[i-1].Served), true
		}
	}
	return last, found
}

// Figures are those of the trips that the server has begun by a time, and of the replies that have arrived.
func (l TraceLane) Figures(now int64) TraceFigures {
	var f TraceFigures
	var times []int64
	for _, t := range l.Trips {
		if t.Served > now {
			break
		}
		f.Commands += t.Commands
		switch {
		case t.Client < 0:
			continue
		case t.Outcome == "allowed":
			f.Allowed++
		case t.Outcome == "denied":
			f.Denied++
		case t.Outcome == "conflict":
			f.Conflicts++
		}
		if t.Got <= now {
			times = append(times, t.Got-t.Sent)
		}
	}
	if n := len(times); n > 0 {
		slices.Sort(times)
		f.Median, f.P99, f.Worst = times[(n-1)/2], times[(n*99+99)/100-1], times[n-1]
	}
	return f
}

// server is a Redis with one thread, and its clients.
type server struct {
	setup    Setup
	strategy algorithm.Strategy
	how      string
	random   rand.PCG
	coming   messages
	sent     int // messages so far: those that arrive together are served in the order of sending
	free     int64
	states   map[int]algorithm.State // by key
	version  int                     // of the race's key: counts writes
	trips    []Trip
}

// message is a trip under way.
type message struct {
	Trip
	arrives, order int64
	seen           int             // watch: the version that was read
	write          algorithm.State // what a write writes
}

func (m *server) run() {
	r := rand.New(&m.random)
	if m.setup.View == "race" {
		for client := range int(m.setup.Clients) {
			m.begin(client, r.Int64N(m.setup.Trip/5+1))
		}
	} else {
		for at := int64(0); at < traceTime; at += max(1, int64(r.ExpFloat64()*minute/float64(m.setup.Rate))) {
			m.send(message{Trip: Trip{Client: r.IntN(int(m.setup.Clients)), Kind: "script", Commands: 1, Sent: at}})
		}
		every := m.setup.Every * millisecond
		for at := every / 2; at < traceTime; at += every {
			m.send(message{Trip: Trip{Client: -1, Kind: "slow", Commands: 1, Sent: at}})
		}
	}
	for m.coming.Len() > 0 {
		m.serve(heap.Pop(&m.coming).(message))
	}
}

// begin sends a client's first message of an attempt.
func (m *server) begin(client int, at int64) {
	t := Trip{Client: client, Sent: at, Kind: "read", Commands: 1} // HMGET
	switch m.how {
	case "watch":
		t.Commands = 2 // WATCH, HMGET
	case "lua":
		t.Kind = "script" // EVALSHA
	}
	m.send(message{Trip: t})
}

func (m *server) send(msg message) {
	m.sent++
	msg.arrives, msg.order = msg.Sent+m.way(), int64(m.sent)
	heap.Push(&m.coming, msg)
}

// way is the time of one way: half a round trip, give or take a fifth.
func (m *server) way() int64 {
	half := m.setup.Trip / 2
	return half - half/5 + rand.New(&m.random).Int64N(2*(half/5)+1)
}

// serve runs a message and lets its client go on.
func (m *server) serve(msg message) {
	cost := msg.Commands * commandCost
	switch {
	case msg.Kind == "script" || msg.Kind == "slow":
		cost = scriptCost
		if msg.Client < 0 && m.how == "linear" {
			cost += m.setup.Entries * EntryCost / 1000
		}
	}
	key := 0
	if m.setup.View == "block" {
		key = msg.Client
	}
	msg.Served = max(msg.arrives, m.free)
	msg.Left = msg.Served + cost
	m.free = msg.Left
	msg.Got = msg.Left + m.way()
	msg.Before = m.states[key]
	msg.After = msg.Before
	switch msg.Kind {
	case "read":
		m.read(msg)
		return
	case "write":
		msg.Outcome = "allowed"
		if m.how == "watch" && m.version != msg.seen {
			msg.Outcome = "conflict"
		} else {
			m.states[key], msg.After = msg.write, msg.write
			m.version++
		}
	default:
		next, d := m.strategy.Take(msg.Before, Origin+msg.Served, m.setup.Cost)
		m.states[key], msg.After, msg.Outcome = next, next, outcome(d)
	}
	m.trips = append(m.trips, msg.Trip)
	if msg.Outcome == "conflict" {
		m.begin(msg.Client, msg.Got)
	}
}

// read hands the state to the client, which decides by itself, and writes if it may pass.
func (m *server) read(msg message) {
	next, d := m.strategy.Take(msg.Before, Origin+msg.Served, m.setup.Cost)
	if !d.Allowed {
		msg.Outcome = "denied"
	}
	m.trips = append(m.trips, msg.Trip)
	if !d.Allowed {
		return
	}
	t := Trip{Client: msg.Client, Kind: "write", Commands: 1, Sent: msg.Got} // HSET
	if m.how == "watch" {
		t.Commands = 3 // MULTI, HSET, EXEC
	}
	m.send(message{Trip: t, seen: m.version, write: next})
}

func outcome(d algorithm.Decision) string {
	if d.Allowed {
		return "allowed"
	}
	return "denied"
}

// messages is a heap by time of arrival.
type messages []message

func (q messages) Len() int { return len(q) }
func (q messages) Less(i, j int) bool {
	return q[i].arrives < q[j].arrives || q[i].arrives == q[j].arrives && q[i].order < q[j].order
}
func (q messages) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *messages) Push(x any)   { *q = append(*q, x.(message)) }
func (q *messages) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
