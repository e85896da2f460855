package algorithmtest

import (
	"math/big"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// levelModel is a token bucket or a leaky bucket on integers of any size: a level of tokens·Period, of which Count
// fall away each tick.
type levelModel struct {
	limit            algorithm.Limit
	queue            bool
	tick             int64    // µs
	token, full, sum *big.Int // of one token, of Burst, and as it stands at ts
	count            *big.Int
	ts               int64 // µs
}

func newLevelModel(l algorithm.Limit, queue bool) *levelModel {
	tick := levelTick(l)
	return &levelModel{
		limit: l, queue: queue, tick: tick, count: big.NewInt(l.Count), sum: new(big.Int),
		token: big.NewInt(period(l) / tick), full: mul(l.Burst, period(l)/tick),
	}
}

// at is the level at now, and the tick on which it stands.
func (m *levelModel) at(now int64) (sum *big.Int, ts int64) {
	if m.sum.Sign() == 0 {
		return new(big.Int), now - now%m.tick
	}
	ticks := max(0, (now-m.ts)/m.tick)
	sum = new(big.Int).Sub(m.sum, new(big.Int).Mul(big.NewInt(ticks), m.count))
	if sum.Sign() <= 0 {
		return new(big.Int), now - now%m.tick
	}
	return sum, m.ts + ticks*m.tick
}

// until is the time from now to when that much has fallen away since ts.
func (m *levelModel) until(now, ts int64, fall *big.Int) time.Duration {
	ticks := ceilDiv(fall, m.count).Int64()
	return time.Duration(max(0, ts+ticks*m.tick-now)) * time.Microsecond
}

func (m *levelModel) Take(now, n int64) algorithm.Decision {
	d := algorithm.Decision{Limit: m.limit.Burst, At: now}
	sum, ts := m.at(now)
	after := new(big.Int).Add(sum, new(big.Int).Mul(big.NewInt(n), m.token))
	switch {
	case n == 0:
		d.Allowed = true
	case n > m.limit.Burst:
		d.RetryAfter = algorithm.Never
	case after.Cmp(m.full) > 0:
		d.RetryAfter = m.until(now, ts, new(big.Int).Sub(after, m.full))
	default:
		if m.queue {
			d.Delay = time.Duration(ceilDiv(sum, m.count).Int64()*m.tick) * time.Microsecond
		}
		d.Allowed, d.Charged = true, n
		m.sum, m.ts = after, ts
		sum = after
	}
	if room := new(big.Int).Sub(m.full, sum); room.Sign() > 0 {
		d.Remaining = room.Div(room, m.token).Int64()
	}
	if sum.Sign() > 0 {
		d.ResetAfter = m.until(now, ts, sum)
	}
	return d
}

func (m *levelModel) Adjust(now, n, at int64) {
	sum, ts := m.at(now)
	after := new(big.Int).Add(sum, new(big.Int).Mul(big.NewInt(n), m.token))
	most := new(big.Int).Add(m.full, m.full)
	if after.Sign() < 0 {
		after.SetInt64(0)
	}
	if after.Cmp(most) > 0 {
		after = most
	}
	m.sum, m.ts = after, ts
}
