package service

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// Status is what a Service runs on now.
type Status struct {
	Path   string      // of the rule file
	Hash   string      // SHA-256 of the text that runs, in hex, as sha256sum prints it
	Loaded time.Time   // when that text was read
	Mode   policy.Mode // of the rules
	Rules  int         // how many there are

	Loads    int64 // readings of the file that were made the rules, that of Open too
	Refusals int64 // readings that were refused

	LastError string    // why the file as it was read last is refused; "": it runs
	Refused   time.Time // when that was; zero with LastError ""

	Overrides      []redis.Override // as they were read last, those that have ended, too; nil in process
	OverridesRead  time.Time        // when that was; zero: never
	OverridesError string           // what is wrong with them, or why a later read failed: the last known are in force; "": nothing
}

// Status returns what runs now: the same hash in every process of a fleet says that a roll-out is over. It waits for
// nothing: during a reload it is what ran before.
func (s *Service) Status() Status {
	st := *s.status.Load()
	st.Overrides = slices.Clone(st.Overrides)
	return st
}

// publish makes what is known now the Status. Service.making is held.
func (s *Service) publish() {
	st := Status{
		Path: s.reader.path, Hash: s.file.hash, Loaded: s.file.at, Mode: s.file.rules.Mode(), Rules: len(s.file.rules.All()),
		Loads: s.file.loads, Refusals: s.file.refusals, Refused: s.file.refused, Overrides: s.live.known, OverridesRead: s.live.at,
	}
	if s.file.err != nil {
		st.LastError = s.file.err.Error()
	}
	if err := s.live.fault(); err != nil {
		st.OverridesError = err.Error()
	}
	s.status.Store(&st)
}
