package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
)

// DenialLogOptions are the choices of a DenialLog. The zero DenialLogOptions are good for most programs.
type DenialLogOptions struct {
	Logger *slog.Logger         // nil: slog.Default()
	Rules  func() *policy.Rules // as in NewLimits: tells names, and shadows, which are not logged
	Lines  int                  // most in a minute; 0: 100; at most 1,000

	// Subject returns what the log is to say of a subject, which may be an address or worse. Nil: the first 16 hex digits
	// of its SHA-256, the same in all processes. Addresses are few enough to be guessed from that; an HMAC is safe.
	Subject func(subject string) string
}

const (
	defaultLines = 100
	mostLines    = 1000
	logMinute    = time.Minute
)

// DenialLog is an observer that writes a line at the first denial of a subject by a limit in a minute. Minutes begin at
// the first denial after the last one has ended, for all subjects together. It keeps a hash for each line, starts no goroutine,
// and a denial that it does not log allocates nothing and takes no lock.
type DenialLog struct {
	o      DenialLogOptions
	limits *Limits[Limit]
	seed   maphash.Seed
	start  time.Time

	minute atomic.Pointer[minute]
	silent atomic.Int64 // denials in this minute, of subjects that found no line
	adding sync.Mutex
}

// minute is which subjects have a line. It is immutable: an addition makes another.
type minute struct {
	ends   time.Duration // since the log was made
	logged map[uint64]struct{}
}

// NewDenialLog returns a log that has seen nothing.
func NewDenialLog(o DenialLogOptions) *DenialLog {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Lines <= 0 {
		o.Lines = defaultLines
	}
	o.Lines = min(o.Lines, mostLines)
	if o.Subject == nil {
		o.Subject = hashed
	}
	l := &DenialLog{o: o, seed: maphash.MakeSeed(), start: time.Now()}
	l.limits = NewLimits(o.Rules, func(limit Limit) *Limit { return &limit })
	l.minute.Store(&minute{})
	return l
}

func hashed(subject string) string {
	sum := sha256.Sum256([]byte(subject))
	return hex.EncodeToString(sum[:8])
}

// Observe logs the ask, if it is such a denial.
func (l *DenialLog) Observe(ctx context.Context, a sluice.Ask, d sluice.Decision, err error, took time.Duration) {
	if !Decides(a.Mode) || OutcomeOf(ctx, d, err, took) != Denied {
		return
	}
	limit := l.limits.Of(a.Key.Rule, a.Strategy)
	if limit.Shadow {
		return
	}
	hash := maphash.String(l.seed, a.Key.Subject) ^ bits.RotateLeft64(maphash.String(l.seed, a.Key.Rule), 32)
	now := time.Since(l.start)
	if m := l.minute.Load(); now < m.ends {
		if _, ok := m.logged[hash]; ok {
			return
		}
		if len(m.logged) >= l.o.Lines {
			l.silent.Add(1)
			return
		}
	}
	first, silent := l.claim(hash, now)
	if silent > 0 {
		l.o.Logger.WarnContext(ctx, "sluice: denials of further subjects were not logged", "denials", silent, "lines", l.o.Lines)
	}
	if first {
		l.o.Logger.LogAttrs(ctx, slog.LevelInfo, "sluice: denied", slog.String("rule", limit.Rule), slog.String("limit", limit.Name),
			slog.String("algorithm", limit.Algorithm), slog.String("subject", l.o.Subject(a.Key.Subject)), slog.Int64("n", a.N),
			slog.String("source", d.Source.String()), slog.String("retry_after", retryText(d.RetryAfter)))
	}
}

func retryText(d time.Duration) string {
	if d == sluice.Never {
		return "never"
	}
	return d.String()
}

// claim tells whether the line is the caller's to write, and how many denials a minute that has ended kept silent about.
func (l *DenialLog) claim(hash uint64, now time.Duration) (first bool, silent int64) {
	l.adding.Lock()
	defer l.adding.Unlock()
	old, next := l.minute.Load(), &minute{ends: now + logMinute, logged: map[uint64]struct{}{}}
	if now < old.ends {
		if _, ok := old.logged[hash]; ok {
			return false, 0
		}
		if len(old.logged) >= l.o.Lines {
			l.silent.Add(1)
			return false, 0
		}
		next.ends = old.ends
		for h := range old.logged {
			next.logged[h] = struct{}{}
		}
	} else {
		silent = l.silent.Swap(0)
	}
	next.logged[hash] = struct{}{}
	l.minute.Store(next)
	return true, silent
}
