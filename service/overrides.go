package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// live is what is known of the overrides in Redis. Service.making guards it.
type live struct {
	known     []redis.Override // as they were read last; nil: never
	at        time.Time
	malformed error // names entries that could not be read then
	unused    error // names those of known that fit no limit of the file
	err       error // why a later read failed
}

func (l *live) fault() error {
	if l.err != nil {
		return l.err
	}
	return errors.Join(l.malformed, l.unused)
}

// firstTime is how long Open waits for the overrides, so that a process does not begin without them; and no longer, since
// Redis need not be there.
const firstTime = time.Second

func (s *Service) firstOverrides(ctx context.Context, rules *policy.Rules) {
	if s.store.redis == nil || rules.Config().Mode == policy.ModeLocal {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	list, err := s.store.redis.Overrides(ctx)
	s.making.Lock()
	defer s.making.Unlock()
	s.learn(ctx, list, err)
}

// followOverrides reads the overrides again and again until ctx ends: one command for all that is decided meanwhile.
func (s *Service) followOverrides(ctx context.Context) {
	for {
		jitter := 0.9 + 0.2*rand.Float64() // so that a fleet that starts at once does not ask at once
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(jitter * float64(s.times.overrides))):
		}
		if s.store.gate.shut.Load() { // Redis is to be left alone
			continue
		}
		list, err := s.store.redis.Overrides(ctx)
		if ctx.Err() != nil {
			return
		}
		s.making.Lock()
		if s.learn(ctx, list, err) {
			was := s.current.Load()
			s.use(s.overridden(ctx, s.file.rules, was.rules), was.limiters)
		}
		s.publish()
		s.making.Unlock()
		if list != nil || answered(err) {
			s.probe(ctx)
		}
	}
}

// answered tells whether a read of the overrides that gave none has failed by an answer of Redis that says nothing of its
// health: of another type under the key, or of a user who may not read them.
func answered(err error) bool { return errors.Is(err, sluice.ErrState) || lacksRight(err.Error()) }

// probe lets the breaker of a process without requests see that Redis answers. It is apart from who follows the overrides,
// which Options.OnBreaker would keep waiting; while it does, no other is begun.
func (s *Service) probe(ctx context.Context) {
	if !s.probing.CompareAndSwap(false, true) {
		return
	}
	s.running.Go(func() {
		defer s.probing.Store(false)
		s.store.breaker.Probe(ctx)
	})
}

// learn remembers what a read of the overrides gave, and tells whether it is news. A read that failed changes nothing.
func (s *Service) learn(ctx context.Context, list []redis.Override, err error) (news bool) {
	if list == nil {
		if s.live.err == nil {
			s.logger.WarnContext(ctx, "sluice: overrides can't be read, those that are known stay in force", "error", err)
		}
		s.live.err = err
		return false
	}
	if s.live.err != nil {
		s.logger.InfoContext(ctx, "sluice: overrides can be read again")
	}
	if err != nil && (s.live.malformed == nil || s.live.malformed.Error() != err.Error()) {
		s.logger.WarnContext(ctx, "sluice: overrides are left out", "error", err)
	}
	news = !slices.EqualFunc(list, s.live.known, func(a, b redis.Override) bool {
		return a.Rule == b.Rule && a.Subject == b.Subject && a.Limit == b.Limit && a.Until.Equal(b.Until)
	})
	s.live.known, s.live.at, s.live.malformed, s.live.err = list, time.Now(), err, nil
	return news
}

// overridden returns rules with the overrides that are known. Those that fit no limit are logged and left out. Where
// the whole can't be made, it is otherwise.
func (s *Service) overridden(ctx context.Context, rules, otherwise *policy.Rules) *policy.Rules {
	merged, unused, err := merge(rules, s.live.known, s.now())
	s.live.unused = errors.Join(append(unused, err)...)
	if len(s.live.known) > 0 {
		s.logger.InfoContext(ctx, "sluice: overrides", "set", len(s.live.known))
	}
	if s.live.unused != nil {
		s.logger.WarnContext(ctx, "sluice: overrides are not in force", "error", s.live.unused)
	}
	if err != nil {
		return otherwise
	}
	return merged
}

// Overridden returns rules with those of the overrides that have not ended by now, as a Service runs them: they go
// before the overrides of the file. The error names those that fit none of the rules' limits; the rules are good all the
// same.
func Overridden(rules *policy.Rules, overrides []redis.Override, now time.Time) (*policy.Rules, error) {
	merged, unused, err := merge(rules, overrides, now)
	if err != nil {
		merged = rules
	}
	return merged, errors.Join(append(unused, err)...)
}

// merge is Overridden, with the overrides that fit no limit apart from what keeps the whole from being made, such as a
// file with a secret that has gone since.
func merge(rules *policy.Rules, overrides []redis.Override, now time.Time) (merged *policy.Rules, unused []error, err error) {
	type place struct{ rule, limit int }
	places := map[string]place{} // by Key.Rule
	for i, rule := range rules.All() {
		for j, limit := range rule.Limits {
			places[limit.KeyRule] = place{i, j}
		}
	}
	config, some := rules.Config(), false
	for _, o := range overrides {
		if o.Ended(now) {
			continue
		}
		at, ok := places[o.Rule]
		if !ok {
			unused = append(unused, fmt.Errorf("service: override of %s for %s: the rule file has no such limit", o.Rule, o.Subject))
			continue
		}
		limit := &config.Rules[at.rule].Limits[at.limit]
		o.Limit = withBurst(limit.Algorithm, o.Limit)
		if _, err := policy.NewStrategy(limit.Algorithm, o.Limit); err != nil {
			unused = append(unused, fmt.Errorf("service: override of %s for %s: %w", o.Rule, o.Subject, err))
			continue
		}
		limit.Overrides, some = append(limit.Overrides, policy.OverrideConfig{SubjectKey: o.Subject, Limit: o.Limit, Until: o.Until}), true
	}
	if !some {
		return rules, unused, nil
	}
	merged, err = policy.New(config)
	if err != nil {
		return nil, unused, fmt.Errorf("service: overrides: %w", err)
	}
	return merged, unused, nil
}

// withBurst fills in the burst that is left out, as a rule file does.
func withBurst(algo string, l algorithm.Limit) algorithm.Limit {
	if l.Burst == 0 && policy.HasBurst(algo) {
		l.Burst = l.Count
	}
	return l
}
