package service

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/policy"
)

// loaded is what is known of the file. It is written in Service.reloading's turn and under Service.making, and read in
// either.
type loaded struct {
	rules   *policy.Rules // of the file alone, without overrides
	hash    string        // of their text
	at      time.Time
	tried   string // hash of the text that was read last, whatever came of it
	err     error  // why that was refused; nil: it was not
	refused time.Time

	loads, refusals int64
}

// Reload reads the file again. Requests are matched by the new rules from its return; counters survive, those of
// edited limits too. If the file is faulty, or its store or failover section has changed, which needs a restart, the
// rules stay as they were, and the error says why. Either is logged, and in Status. If ctx ends before, nothing has
// changed. A file that is not read within ten seconds counts as faulty.
func (s *Service) Reload(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.reloading.take(ctx); err != nil {
		return err
	}
	defer s.reloading.end()
	text, err := s.reader.text(ctx)
	if err != nil {
		return err
	}
	return s.reload(ctx, text)
}

// reload makes t the rules, or refuses it; or neither, if ctx ends before.
func (s *Service) reload(ctx context.Context, t text) error {
	rules, err := s.reader.rules(ctx, t)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = s.needsRestart(rules)
	}
	s.making.Lock()
	defer s.making.Unlock()
	if err != nil {
		s.refuse(ctx, t, err)
		return err
	}
	s.accept(ctx, t, rules)
	return nil
}

// refuse takes note of why t is not the rules.
func (s *Service) refuse(ctx context.Context, t text, err error) {
	s.file.tried, s.file.err, s.file.refused = t.hash, err, time.Now()
	s.file.refusals++
	s.publish()
	s.logger.ErrorContext(ctx, "sluice: the rule file is refused, the rules stay as they were",
		"path", s.reader.path, "hash", t.hash, "running", s.file.hash, "error", err)
}

// needsRestart tells what of rules can't change while the Service runs.
func (s *Service) needsRestart(rules *policy.Rules) error {
	var errs []error
	was, is := s.file.rules.Config(), rules.Config()
	if is.Store != was.Store {
		errs = append(errs, errors.New("service: reload: the store section has changed: restart to change store"))
	}
	if is.Failover != was.Failover {
		errs = append(errs, errors.New("service: reload: the failover section has changed: restart to change failover"))
	}
	return errors.Join(errs...)
}

// accept makes rules, which t says, the running ones.
func (s *Service) accept(ctx context.Context, t text, rules *policy.Rules) {
	s.file = loaded{
		rules: rules, hash: t.hash, at: time.Now(), tried: t.hash, loads: s.file.loads + 1, refusals: s.file.refusals,
	}
	s.logger.InfoContext(ctx, "sluice: rules", "path", s.reader.path, "hash", t.hash, "rules", len(rules.All()))
	if warnings := rules.Config().Warnings(); len(warnings) > 0 {
		s.logger.WarnContext(ctx, "sluice: rule file", "path", s.reader.path, "warnings", warnings)
	}
	s.use(s.overridden(ctx, rules, rules), nil)
	s.publish()
}
