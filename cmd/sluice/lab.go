package main

// experiments are the commands of "sluice lab".
type experiments struct {
	Compare   compare    `cmd:"" help:"Run all algorithms against the same arrivals, in virtual time."`
	Boundary  boundary   `cmd:"" help:"Ask around the end of a window, and count what passes."`
	Burst     burst      `cmd:"" help:"Ask from a fresh state without end, and count what passes at first."`
	Race      race       `cmd:"" help:"Let many callers ask at once: read-compute-write, WATCH and Lua."`
	Block     block      `cmd:"" help:"Measure how long others wait for one client's slow script."`
	Clock     clock      `cmd:"" help:"Decide by clocks that are wrong, and count what is admitted."`
	TTL       ttl        `cmd:"" name:"ttl" help:"Let keys expire too early and too late: what is admitted, and what stays."`
	Precision precision  `cmd:"" help:"Keep numbers in floats and in text, and count what they cost."`
	Outage    outage     `cmd:"" help:"Take Redis away from a fleet, and count what it admits."`
	Play      playground `cmd:"" help:"Serve a page on which the algorithms decide about traffic of your choice."`
}
