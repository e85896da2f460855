// Package sim runs limiters in virtual time: an hour of traffic in a second or so, the same each time.
//
// A [Sim] meets a [Limiter] with [Arrivals], one decision at a time, and counts. [Of] is a limiter of any strategy: it
// calls the strategy's own Take, as stores do. [Exact] is the exact sliding log, which remembers every unit: an oracle
// beside which the others are seen, too large to be used for limiting.
//
// Times are µs. Nothing sleeps, and nothing is kept of a request that has been decided, so the length of a run costs no
// memory.
package sim
