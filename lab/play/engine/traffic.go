package engine

import "math/rand/v2"

// arrival is one request.
type arrival struct {
	at      int64 // µs
	subject int   // which client
	n       int64 // units
}

// traffic makes up requests in order of time. It is a value: a copy goes on as the original does.
type traffic struct {
	kind    string
	rate    int64 // requests a minute
	cost    int64
	clients int64
	until   int64 // µs; 0: none

	// All but poisson is a cycle: `many` requests, from `offset` on, one each minute/rate (a burst: at once).
	cycle, offset, many int64 // µs, µs, requests
	j, i                int64 // the next request: its cycle, its number in it

	random rand.PCG
	at     int64 // µs: the time of the last poisson request
}

// newTraffic returns the traffic of a setup after a time: all of it where after is negative.
func newTraffic(s Setup, after int64) traffic {
	t := traffic{kind: s.Traffic, rate: s.Rate, cost: s.Cost, clients: s.Clients, until: s.Until * millisecond}
	t.random.Seed(uint64(s.Seed), 0)
	every, period := s.Every*millisecond, s.Period*millisecond
	switch s.Traffic {
	case "steady":
		t.cycle, t.many = minute, s.Rate
	case "onoff":
		t.cycle, t.many = every, (every/2*s.Rate+minute-1)/minute
	case "bursts":
		t.cycle, t.many = every, s.Size
	case "boundary": // the sixth of a period before each second boundary, and the sixth after it
		t.cycle, t.offset = 2*period, period-period/6
		t.many = period/3*s.Rate/minute + 1
	}
	if after < 0 {
		return t
	}
	if t.kind == "poisson" {
		t.at = after
		return t
	}
	if t.cycle > 0 {
		t.j = after / t.cycle
		for t.peek().at <= after {
			t.skip()
		}
	}
	return t
}

// never is later than all traffic.
const never = 1 << 62

// peek returns the next request; at never if there is none.
func (t *traffic) peek() arrival {
	if t.kind == "poisson" {
		ahead := *t // the copy's randomness moves, ours does not
		return ahead.draw()
	}
	a := arrival{at: never, n: t.cost}
	if t.cycle == 0 {
		return a
	}
	a.at = t.j*t.cycle + t.offset
	turn := t.j
	if t.kind != "bursts" {
		a.at += t.i * minute / t.rate
		turn = t.j*t.many + t.i
	}
	a.subject = int(turn % t.clients)
	return t.ended(a)
}

// skip goes past the next request.
func (t *traffic) skip() {
	if t.kind == "poisson" {
		t.draw()
		return
	}
	if t.i++; t.i >= t.many {
		t.i, t.j = 0, t.j+1
	}
}

func (t *traffic) draw() arrival {
	r := rand.New(&t.random)
	t.at += max(1, int64(r.ExpFloat64()*minute/float64(t.rate)))
	return t.ended(arrival{at: t.at, n: t.cost, subject: r.IntN(int(t.clients))})
}

func (t *traffic) ended(a arrival) arrival {
	if t.until > 0 && a.at > t.until {
		a.at = never
	}
	return a
}
