// Package engine runs the playground's experiments in virtual time: the same traffic through several limiters beside
// each other, one decision after the other, forwards and back.
//
// Every decision is one of the engine's own: [algorithm.Strategy.Take] while Redis is there; the stores that decide in
// an outage (store/local and failover) while it is away. Two experiments are models of a Redis server, its
// clients and the way between them ([Trace]): there too, each client's decision is Take's.
//
// Everything is a function of a [Setup] and of what the user did: no clock, no goroutine, no randomness but a seed. So
// a step back is a replay. Times are µs since [Origin], unless their name says ms.
package engine

// Origin is when virtual time begins: 2023-11-14 00:00:00 UTC in µs since the Unix epoch. Windows of every period
// that divides a day begin there.
const Origin = 1_699_920_000_000_000

const (
	millisecond = 1_000     // µs
	second      = 1_000_000 // µs
	minute      = 60 * second
)
