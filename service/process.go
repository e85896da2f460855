package service

import "github.com/sluice-go/sluice/telemetry"

// Process returns where telemetry reads what this process knows of itself: the breaker and the share, where there is a
// Redis; the keys that are kept in process; and the rules that run, with how often the file was read. It asks nobody.
func (s *Service) Process() telemetry.Process {
	p := telemetry.Process{Stores: s.store.kept, Rules: s.reading}
	if b := s.store.breaker; b != nil {
		p.Breaker, p.Share = b.State, b.Share
	}
	return p
}

func (s *Service) reading() telemetry.Rules {
	st := s.Status()
	return telemetry.Rules{
		Hash: st.Hash, Mode: string(st.Mode), Count: st.Rules,
		Loaded: st.Loaded, Refused: st.Refused, Loads: st.Loads, Refusals: st.Refusals,
	}
}
