// Package service runs a rule file inside any process: [Open] reads it and opens its store, and the Service is a
// middleware that applies it. A program of one's own on a rule file is twenty lines; see the example.
//
// The rules change while it runs: by [Service.Reload], by edits of the file where Options.Watch says so, and by overrides
// of single subjects in Redis, which all processes of the same store.prefix follow. Counters survive each of these.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/failover"
	"github.com/sluice-go/sluice/policy"
)

// Options are the choices of a Service that a rule file cannot make. The zero Options are good for most programs.
type Options struct {
	// Client is used in place of the one that the file's store.redis says, which is then not read. It stays the
	// caller's to close. Nil: what the file says; in process, where it says nothing.
	Client goredis.UniversalClient

	// Clock is the time that decisions are made at, and that overrides end at; see the stores' own Options. Nil: for
	// decisions Redis TIME, or time.Now in process, and time.Now for overrides.
	Clock func() time.Time

	Observer sluice.Observer // is told of each decision; nil: nobody

	// OnBreaker is told of each change of the breaker before Redis, in order, on the goroutine of a request, of who reads
	// Process().Breaker, or of the Service, where a panic ends the process. It must return soon: until then no later change
	// is told, and Close waits for it. There is none in process. Nil: nobody; the changes are in the log either way.
	OnBreaker func(from, to failover.State)

	Logger *slog.Logger // nil: slog.Default()

	// Watch reloads the file whenever its text has changed, as Reload does; what came of it is in the log and in Status.
	// It sees edits in place, files put in the old one's place, and links that lead elsewhere, such as those of a
	// Kubernetes ConfigMap. Off, since a program may reload at times of its own choice.
	Watch bool

	times times
	read  func(path string) text // the rule file; nil: read
}

// times are how long a Service and its goroutines wait. Zero: the default.
type times struct {
	overrides time.Duration // between two looks at the overrides in Redis, give or take a tenth; 2s
	settle    time.Duration // that a file must stay the same before it is reloaded; 50ms
	look      time.Duration // between two looks at a file that nothing was heard of; 10s
	read      time.Duration // for the file, before its disk counts as away; 10s
	close     time.Duration // that Close waits for them; 5s
}

// Service is a rule file at work. It is safe for concurrent use.
type Service struct {
	reader   reader
	logger   *slog.Logger
	store    opened
	failures failures
	now      func() time.Time // that overrides end at
	times    times

	current atomic.Pointer[generation]
	status  atomic.Pointer[Status] // so that who asks never waits for who makes rules

	reloading turn       // of one reading of the file, so that the last to be read is the one that runs
	making    sync.Mutex // held while rules are made of what follows; never while the file is read or compiled
	file      loaded
	live      live

	probing atomic.Bool // a Probe of the breaker is under way

	stop    context.CancelFunc // ends the goroutines
	running sync.WaitGroup
	closing func() error
}

// Open reads the rule file at path and opens the store that it names. Redis need not be reachable: until it is,
// requests are answered as each rule's on_outage says. It is asked once for overrides, for at most a second.
//
// The error holds every fault of the file, with line and column; see package rulefile. An error about the store names
// the variable or file that its URL came from, and never the URL.
func Open(ctx context.Context, path string, o Options) (*Service, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := o.times.orDefault()
	if o.read == nil {
		o.read = read
	}
	reader := newReader(path, o.read, t.read)
	text, err := reader.text(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := reader.rules(ctx, text)
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
	s := &Service{reader: reader, reloading: newTurn(), logger: o.Logger, store: store, now: time.Now, times: t}
	if o.Clock != nil {
		s.now = o.Clock
	}
	s.failures.logger = o.Logger

	work, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.closing = sync.OnceValue(func() error {
		s.stop()
		return errors.Join(s.wait(), s.store.close())
	})
	s.firstOverrides(ctx, rules)
	s.making.Lock()
	s.accept(ctx, text, rules)
	s.making.Unlock()
	if o.Watch {
		s.startWatching(work)
	}
	if s.store.redis != nil {
		s.running.Go(func() { s.followOverrides(work) })
	}
	return s, nil
}

func (t times) orDefault() times {
	set := func(d *time.Duration, otherwise time.Duration) {
		if *d <= 0 {
			*d = otherwise
		}
	}
	set(&t.overrides, 2*time.Second)
	set(&t.settle, 50*time.Millisecond)
	set(&t.look, 10*time.Second)
	set(&t.read, 10*time.Second)
	set(&t.close, 5*time.Second)
	return t
}

// Middleware returns a handler that calls next for those requests that the rules let pass, and answers the others; see
// package httplimit. It has the form that chi and others chain.
func (s *Service) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.current.Load().limits.Serve(w, r, next)
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
// The limiter follows overrides of single subjects, and keeps the limit that it was made with, so ask again after a
// reload.
func (s *Service) Limiter(rule, limit string) (*sluice.Limiter, bool) {
	l, ok := s.current.Load().limiters.byName[limiterName{rule, limit}]
	return l, ok
}

// Rules returns the rules as they are now, with the overrides that are set in Redis.
func (s *Service) Rules() *policy.Rules { return s.current.Load().rules }

// Current returns the rules as they are now, and the store that each on_outage decides in, for those who apply the rules to
// other things than HTTP requests, such as Options.Current of package grpclimit. Both are of the same reading of the
// file, and out of date once it is read again, so ask for each decision. It is cheap. The map is to be read only.
func (s *Service) Current() (*policy.Rules, map[policy.OnOutage]sluice.Store) {
	g := s.current.Load()
	return g.rules, g.stores
}

// Close ends what Open began: it waits for the goroutines, for at most five seconds, and closes the store. It may be called
// twice. Requests that come later are answered as in an outage, if their store was in Redis.
func (s *Service) Close() error { return s.closing() }

// wait waits for the goroutines. What they do between two looks at their context has no bound of its own: to merge overrides
// into thousands of rules, to tell a logger of it, to watch a directory whose disk hangs.
func (s *Service) wait() error {
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	t := time.NewTimer(s.times.close)
	defer t.Stop()
	select {
	case <-ended:
		return nil
	case <-t.C:
		return fmt.Errorf("service: close: a goroutine has not ended after %v", s.times.close)
	}
}
