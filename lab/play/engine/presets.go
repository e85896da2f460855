package engine

// Preset is a setup with a question. Its words are among the page's strings; its figures are tested.
type Preset struct {
	Name  string
	Setup string // as Parse reads it
	End   int64  // ms: when its answer can be seen
}

// Presets are the eight questions of the lesson, in its order.
func Presets() []Preset {
	return []Preset{
		// 60 requests a second, from 10 s before a minute's end to 10 s after it.
		{"boundary", "count=600&period=60000&burst=600&traffic=boundary&rate=3600&window=20000&span=80000", 75_000},
		{"burst", "traffic=steady&rate=3000&window=1000&span=3000", 2_500},
		{"strict", "count=5&burst=5&traffic=steady&rate=3000&window=1000&span=5000", 4_500},
		{"wait", "burst=20&traffic=bursts&size=30&every=60000&until=1&window=1000&span=3000", 2_500},
		{"race", "view=race&count=1&period=60000&burst=1&clients=40", 4},
		{"ttl", "view=ttl&count=5&period=600000&burst=5&traffic=bursts&size=5&every=9000&clients=10&until=600000&window=600000&span=1600000", 1_500_000},
		{"block", "view=block&count=100&burst=100&rate=60000&every=200&clients=20&trip=500", 1_000},
		{"outage", "view=outage&count=100&burst=100&traffic=steady&rate=36000&away=3000&back=8000&span=10500", 10_000},
	}
}
