package service

import "time"

// Quickly returns o with waits that a test has time for.
func (o Options) Quickly() Options {
	o.times = times{overrides: 20 * time.Millisecond, settle: 5 * time.Millisecond, look: time.Hour}
	return o
}

// Looking returns o with looks at the file at this pace, for what the system does not tell of.
func (o Options) Looking(every time.Duration) Options {
	o.times.look = every
	return o
}

// Seldom returns o with looks at the overrides that no test lives to see, but for Open's.
func (o Options) Seldom() Options {
	o.times.overrides = time.Hour
	return o
}
