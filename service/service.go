// Package service runs a rule file inside any process: [Open] reads it and opens its store, and the Service is a
// middleware that applies it. A program of one's own on a rule file is twenty lines; see the example.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
)

// Options are the choices of a Service that a rule file cannot make. The zero Options are good for most programs.
type Options struct {
	// Client is used in place of the one that the file's store.redis says, which is then not read. It stays the
	// caller's to close. Nil: what the file says; in process, where it says nothing.
	Client goredis.UniversalClient

	// Clock is the time that decisions are made at; see the stores' own Options. Nil: Redis TIME, or time.Now in
	// process.
	Clock func() time.Time

	Observer sluice.Observer // is told of each decision; nil: nobody
	Logger   *slog.Logger    // nil: slog.Default()
}

// Service is a rule file at work. It is safe for concurrent use.
type Service struct {
	path     string
	logger   *slog.Logger
	store    opened
	failures failures

	reloading sync.Mutex
	current   atomic.Pointer[generation]
	closing   func() error
}

// generation is what one reading of the file made. It is immutable.
type generation struct {
	rules    *policy.Rules
	limits   *httplimit.Middleware
	limiters map[limiterName]*sluice.Limiter
}

// limiterName names a limit; limit is "" for the one limit of a rule.
type limiterName struct{ rule, limit string }

// Open reads the rule file at path and opens the store that it names. Redis need not be reachable: until it is,
// requests are answered as each rule's on_outage says.
//
// The error holds every fault of the file, with line and column; see package rulefile. An error about the store names
// the variable or file that its URL came from, and never the URL.
func Open(ctx context.Context, path string, o Options) (*Service, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rules, err := load(path)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	store, err := openStore(rules.Config(), o)
	if err != nil {
		return nil, err
	}
	s := &Service{path: path, logger: o.Logger, store: store, closing: sync.OnceValue(store.close)}
	s.failures.logger = o.Logger
	s.use(ctx, rules)
	return s, nil
}

func load(path string) (*policy.Rules, error) {
	config, err := rulefile.Load(path)
	if err != nil {
		return nil, err
	}
	return policy.New(config)
}

// use makes rules the ones that requests are matched by from now on.
func (s *Service) use(ctx context.Context, rules *policy.Rules) {
	config := rules.Config()
	if warnings := config.Warnings(); len(warnings) > 0 {
		s.logger.WarnContext(ctx, "sluice: rule file", "path", s.path, "warnings", warnings)
	}
	byOutage := s.store.byOutage
	if config.Mode == policy.ModeLocal {
		byOutage = s.store.local
	}
	g := &generation{rules: rules, limiters: make(map[limiterName]*sluice.Limiter)}
	g.limits = httplimit.New(httplimit.Options{
		Rules:   rules,
		Stores:  byOutage,
		Style:   config.Headers,
		OnError: s.failures.report,
	})
	for _, rule := range rules.All() {
		for _, limit := range rule.Limits {
			l := sluice.New(byOutage[rule.OnOutage], limit.Strategy, limit.KeyRule)
			g.limiters[limiterName{rule.Name, limit.Name}] = l
			if len(rule.Limits) == 1 {
				g.limiters[limiterName{rule.Name, ""}] = l
			}
		}
	}
	if s.store.gate == nil {
		s.current.Store(g)
		return
	}
	// Redis is out of reach only while all rules decide on buckets: none is to answer for an outage by allow or deny.
	if config.Mode != policy.ModeLocal {
		s.store.gate.shut.Store(false)
	}
	s.current.Store(g)
	if config.Mode == policy.ModeLocal {
		s.store.gate.shut.Store(true)
	}
}

// Middleware returns a handler that calls next for those requests that the rules let pass, and answers the others; see
// package httplimit. It has the form that chi and others chain.
func (s *Service) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Check(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Check decides a request as [httplimit.Middleware.Check] does, by the rules as they are now. True: it may go on.
// False: the answer has been written.
func (s *Service) Check(w http.ResponseWriter, r *http.Request) bool {
	return s.current.Load().limits.Check(w, r)
}

// Limiter returns the limiter of a rule's limit, for work that is no HTTP request; limit may be "" where the rule has
// one. It is false where there is none of that name.
//
// It shares keys and counters with the middleware for subjects of the same text: those that [Service.Rules] gives.
// The limiter keeps the limit that it was made with, so ask again after a reload.
func (s *Service) Limiter(rule, limit string) (*sluice.Limiter, bool) {
	l, ok := s.current.Load().limiters[limiterName{rule, limit}]
	return l, ok
}

// Rules returns the rules as they are now.
func (s *Service) Rules() *policy.Rules { return s.current.Load().rules }

// Reload reads the file again. Requests are matched by the new rules from its return; counters survive, those of
// edited limits too. If the file is faulty, or its store or failover section has changed, which needs a restart, the
// rules stay as they were, and the error says why.
func (s *Service) Reload(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	rules, err := load(s.path)
	if err != nil {
		return err
	}
	switch was, is := s.Rules().Config(), rules.Config(); {
	case is.Store != was.Store:
		return errors.New("service: reload: the store section has changed: restart to change store")
	case is.Failover != was.Failover:
		return errors.New("service: reload: the failover section has changed: restart to change failover")
	}
	s.use(ctx, rules)
	return nil
}

// Close closes the store that Open opened. It may be called twice. Requests that come later are answered as in an
// outage, if their store was in Redis.
func (s *Service) Close() error { return s.closing() }
