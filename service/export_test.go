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

// Reading returns o with reads of the file that first call before, and are waited for within this time.
func (o Options) Reading(before func(), within time.Duration) Options {
	o.read = func(path string) text { before(); return read(path) }
	o.times.read = within
	return o
}

// Closing returns o with this time for Close to wait.
func (o Options) Closing(within time.Duration) Options {
	o.times.close = within
	return o
}

// ReadOpened is how a file is read that was a regular one when it was looked at.
func ReadOpened(path string) error { return readOpened(path).err }
