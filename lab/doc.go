// Package lab runs experiments with limiters and draws what they did.
//
// In virtual time, by package sim: [Compare] meets all algorithms with the same arrivals, [Boundary] asks around the end
// of a window, [Burst] from a fresh state. On a Redis of the experiment's own: [Outage] takes it away from a fleet.
//
// A [Result] is data. It can be written as text, CSV, JSON, and as one HTML page that stands alone.
package lab
