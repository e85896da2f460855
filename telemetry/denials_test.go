package telemetry_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/telemetry"
)

// textLogger writes lines without their time.
func textLogger(to io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

var denied = sluice.Decision{RetryAfter: 1500 * time.Millisecond}

func ask(rule, subject string) sluice.Ask {
	return sluice.Ask{Strategy: bucket(), Key: sluice.Key{Rule: rule, Subject: subject}, N: 1}
}

func TestDenialLogSaysItOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := rules(t, policy.ModeEnforce, "ip")
		log := telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: textLogger(&out), Rules: func() *policy.Rules { return r }})
		lines := func() int { n := strings.Count(out.String(), "\n"); out.Reset(); return n }
		see := func(a sluice.Ask, d sluice.Decision, err error) { log.Observe(t.Context(), a, d, err, 0) }

		see(ask("login", "192.0.2.1"), denied, nil)
		want := `level=INFO msg="sluice: denied" rule=login limit=ip algorithm=token_bucket subject=37fcff24bf62035b n=1 source=shared retry_after=1.5s` + "\n"
		if got := out.String(); got != want {
			t.Errorf("got  %swant %s", got, want)
		}
		out.Reset()
		for range 59 {
			time.Sleep(time.Second)
			see(ask("login", "192.0.2.1"), denied, nil)
		}
		if n := lines(); n != 0 {
			t.Errorf("%d more lines in the same minute", n)
		}
		see(ask("login", "192.0.2.2"), denied, nil)
		see(ask("api/all", "192.0.2.1"), denied, nil)
		if n := lines(); n != 2 {
			t.Errorf("another subject and another limit: %d lines, want 2", n)
		}
		time.Sleep(2 * time.Second)
		see(ask("login", "192.0.2.1"), sluice.Decision{RetryAfter: sluice.Never}, nil)
		if got := out.String(); !strings.Contains(got, "retry_after=never") {
			t.Errorf("in the next minute: %q", got)
		}
		out.Reset()

		peek := ask("login", "x")
		peek.Mode = sluice.Peek
		see(peek, denied, nil)
		see(ask("login", "x"), sluice.Decision{Allowed: true}, nil)
		see(ask("login", "x"), sluice.Decision{}, nil) // withheld
		see(ask("login", "x"), sluice.Decision{}, sluice.ErrUnavailable)
		see(ask("login/next", "x"), denied, nil) // a shadow
		if n := lines(); n != 0 {
			t.Errorf("%d lines about what is no denial", n)
		}
	})
}

func TestDenialLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: textLogger(&out), Lines: 3, Subject: func(s string) string { return s }})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 1000 {
					log.Observe(t.Context(), ask("api", fmt.Sprint(g, i)), denied, nil, 0)
				}
			})
		}
		wg.Wait()
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("%d lines, want 3", n)
		}
		out.Reset()
		time.Sleep(time.Minute)
		log.Observe(t.Context(), ask("api", "10.0.0.1"), denied, nil, 0)
		want := `level=WARN msg="sluice: denials of further subjects were not logged" denials=3997 lines=3
level=INFO msg="sluice: denied" rule=api limit="" algorithm=token_bucket subject=10.0.0.1 n=1 source=shared retry_after=1.5s
`
		if got := out.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// Callers who are denied at the same time write one line together.
func TestDenialLogIsOfOneMind(t *testing.T) {
	const subjects = 800
	var out bytes.Buffer // the handler serializes writes
	log := telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: textLogger(&out), Lines: subjects})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range subjects {
				log.Observe(t.Context(), ask("api", fmt.Sprint(i)), denied, nil, 0)
			}
		})
	}
	wg.Wait()
	if n := strings.Count(out.String(), "\n"); n != subjects {
		t.Errorf("%d lines about %d subjects", n, subjects)
	}
}

func TestDenialLogAllocatesNothing(t *testing.T) {
	log := telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: slog.New(slog.DiscardHandler), Lines: 1})
	observers := telemetry.All(log, log)
	logged, over := ask("api", "logged"), ask("api", "over")
	observers.Observe(t.Context(), logged, denied, nil, 0)
	ctx := t.Context()
	for _, a := range []sluice.Ask{logged, over} {
		if n := testing.AllocsPerRun(1000, func() { observers.Observe(ctx, a, denied, nil, 0) }); n != 0 {
			t.Errorf("%s: %v allocations", a.Key.Subject, n)
		}
	}
}
