package telemetry_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/fixedwindow"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/telemetry"
)

var limit = sluice.Limit{Count: 1, Period: time.Hour, Burst: 1}

func bucket() sluice.Strategy { return sluice.Must(tokenbucket.New(limit)) }

// rules are a rule with one limit that refuses and a shadow, and one with two that refuse.
func rules(t testing.TB, mode policy.Mode, name string) *policy.Rules {
	t.Helper()
	of := func(name, subject string, shadow bool) policy.LimitConfig {
		return policy.LimitConfig{Name: name, Algorithm: "token_bucket", Limit: limit, Subject: subject, Shadow: shadow}
	}
	r, err := policy.New(policy.Config{Mode: mode, Rules: []policy.RuleConfig{
		{Name: "login", Match: "POST /login", Limits: []policy.LimitConfig{of(name, "ip", false), of("next", "ip", true)}},
		{Name: "api", Match: "/api/", Limits: []policy.LimitConfig{of("each", "ip", false), of("all", "global", false)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func same(l telemetry.Limit) *telemetry.Limit { return &l }

func TestLimitsAreNamedAfterTheRules(t *testing.T) {
	var now atomic.Pointer[policy.Rules]
	limits := telemetry.NewLimits(now.Load, same)
	window := sluice.Must(fixedwindow.New(sluice.Limit{Count: 1, Period: time.Hour}))
	check := func(keyRule string, st sluice.Strategy, want telemetry.Limit) {
		t.Helper()
		if got := *limits.Of(keyRule, st); got != want {
			t.Errorf("%s: %+v, want %+v", keyRule, got, want)
		}
	}
	check("login", bucket(), telemetry.Limit{Rule: "login", Algorithm: "token_bucket"})
	check("login/next", bucket(), telemetry.Limit{Rule: "login", Name: "next", Algorithm: "token_bucket"})

	now.Store(rules(t, policy.ModeEnforce, "ip"))
	check("login", bucket(), telemetry.Limit{Rule: "login", Name: "ip", Algorithm: "token_bucket"})
	check("login", window, telemetry.Limit{Rule: "login", Name: "ip", Algorithm: "fixed_window"})
	check("login/next", bucket(), telemetry.Limit{Rule: "login", Name: "next", Algorithm: "token_bucket", Shadow: true})
	check("api/all", bucket(), telemetry.Limit{Rule: "api", Name: "all", Algorithm: "token_bucket"})
	check("own", bucket(), telemetry.Limit{Rule: "own", Algorithm: "token_bucket"})
	check("bare", nil, telemetry.Limit{Rule: "bare"})

	now.Store(rules(t, policy.ModeShadow, "renamed"))
	check("login", bucket(), telemetry.Limit{Rule: "login", Name: "renamed", Algorithm: "token_bucket", Shadow: true})
	check("own", bucket(), telemetry.Limit{Rule: "own", Algorithm: "token_bucket"})

	if got := limits.Of("\xff/\xfe", bucket()); !utf8.ValidString(got.Rule + got.Name) {
		t.Errorf("%q %q", got.Rule, got.Name)
	}
}

func TestLimitsAreBounded(t *testing.T) {
	var now atomic.Pointer[policy.Rules]
	made := map[telemetry.Limit]int{}
	limits := telemetry.NewLimits(now.Load, func(l telemetry.Limit) *telemetry.Limit { made[l]++; return &l })
	for round := range 3 { // each finds other rules, and so makes all anew
		for i := range telemetry.MaxLimits + 500 {
			got := *limits.Of(fmt.Sprintf("rule-%d-%d", min(round, 1), i), bucket())
			if fits := round == 0 && i < telemetry.MaxLimits; fits == (got == telemetry.Other()) {
				t.Fatalf("round %d, limit %d: %+v", round, i, got)
			}
		}
		now.Store(rules(t, policy.ModeEnforce, "ip"))
	}
	if len(made) != telemetry.MaxLimits+2 {
		t.Errorf("%d names, want %d and Other for limits and shadows", len(made), telemetry.MaxLimits)
	}
	if got := limits.Of("rule-0-3", bucket()); got.Rule != "rule-0-3" {
		t.Errorf("a known limit, under new rules: %+v", *got)
	}
}

// Shadows beyond the bound are no refusals: neither where one reading of the rules has too many, nor where names that
// reloads have left behind have taken the room.
func TestOtherShadows(t *testing.T) {
	other, shadow := telemetry.Other(), telemetry.Other()
	shadow.Shadow = true
	for name, filled := range map[string]bool{"in one reading": false, "by reloads": true} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Pointer[policy.Rules]
			limits := telemetry.NewLimits(now.Load, func(l telemetry.Limit) *telemetry.Limit { return &l })
			if !filled {
				now.Store(rules(t, policy.ModeEnforce, "ip"))
			}
			for i := range telemetry.MaxLimits {
				limits.Of(fmt.Sprint("left-", i), bucket())
			}
			if filled {
				now.Store(rules(t, policy.ModeEnforce, "ip"))
			}
			for range 2 {
				if got := *limits.Of("login/next", bucket()); got != shadow {
					t.Errorf("a shadow is %+v, want %+v", got, shadow)
				}
				if got := *limits.Of("api/all", bucket()); got != other {
					t.Errorf("a limit is %+v, want %+v", got, other)
				}
			}
			now.Store(rules(t, policy.ModeShadow, "ip"))
			if got := *limits.Of("api/all", bucket()); got != shadow {
				t.Errorf("in mode shadow a limit is %+v, want %+v", got, shadow)
			}
		})
	}
}

// All callers get the same V, also while they race to make it.
func TestLimitsAreOne(t *testing.T) {
	limits := telemetry.NewLimits(nil, func(telemetry.Limit) *atomic.Int64 { return new(atomic.Int64) })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				limits.Of(fmt.Sprint("rule", i), bucket()).Add(1)
			}
		})
	}
	wg.Wait()
	for i := range 100 {
		if n := limits.Of(fmt.Sprint("rule", i), bucket()).Load(); n != 8 {
			t.Fatalf("rule %d: %d of 8 were counted", i, n)
		}
	}
}

// A caller who finds nothing, and then that another was faster, takes what that one made.
func TestLimitsAreMadeOnce(t *testing.T) {
	var meanwhile func()
	limits := telemetry.NewLimits(func() *policy.Rules { // is called once the caller has looked
		if f := meanwhile; f != nil {
			meanwhile = nil
			f()
		}
		return nil
	}, same)
	limits.Of("before", bucket())
	var first *telemetry.Limit
	meanwhile = func() { first = limits.Of("api", bucket()) }
	if second := limits.Of("api", bucket()); first == nil || second != first {
		t.Errorf("%p and %p", first, second)
	}
}

func TestLimitsAllocateNothing(t *testing.T) {
	r := rules(t, policy.ModeEnforce, "ip")
	limits := telemetry.NewLimits(func() *policy.Rules { return r }, same)
	st, name := bucket(), strings.Clone("login")
	limits.Of(name, st)
	if n := testing.AllocsPerRun(1000, func() { limits.Of(name, st) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkLimits(b *testing.B) {
	r := rules(b, policy.ModeEnforce, "ip")
	limits := telemetry.NewLimits(func() *policy.Rules { return r }, same)
	st := bucket()
	b.ReportAllocs()
	for b.Loop() {
		limits.Of("login", st)
	}
}

func BenchmarkDenialLog(b *testing.B) {
	log := telemetry.NewDenialLog(telemetry.DenialLogOptions{Logger: slog.New(slog.DiscardHandler)})
	a, ctx := ask("login", "192.0.2.1"), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		log.Observe(ctx, a, denied, nil, 0)
	}
}
