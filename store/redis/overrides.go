package redis

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm"
)

//go:embed overrides.lua
var overridesLua string

// overriding is immutable.
var overriding = newComposed(overridesLua)

// MaxOverrides is how many overrides one prefix may have.
const MaxOverrides = 1000

// Override is another limit for one subject of a limit, set while processes run, for all that share the prefix. The
// store keeps it and does not obey it: its callers ask with a strategy of the Override's Limit, as package service does.
type Override struct {
	Rule    string // Key.Rule
	Subject string // Key.Subject, as in keys: what is secret is a hash there
	Limit   algorithm.Limit
	Until   time.Time // its end, by the clocks of those who obey it; zero: none
}

// Ended tells whether the override has come to its end.
func (o Override) Ended(now time.Time) bool { return !o.Until.IsZero() && !now.Before(o.Until) }

// Overrides returns all overrides of this prefix by rule and subject, those that have ended, too. It is one command, and
// its errors are those of Take. Entries that can't be read are left out, and an error that wraps ErrState names them:
// the list, which is not nil then, holds the others.
//
// They are one hash, <prefix>:{overrides}, without a TTL. A field is "<rule> <subject>", each with %XX for bytes outside
// A-Za-z0-9._:@/-; a value is JSON such as {"limit":"5000/10s","burst":5000,"until":"2027-01-01T00:00:00Z"}, the last
// two where they are needed. To read it a user needs EVALSHA, EVAL and HGETALL; to write it, HMGET, HSET, HLEN and HDEL
// as well.
func (s *Store) Overrides(ctx context.Context) ([]Override, error) {
	entries, err := s.overrides(ctx)
	if entries == nil {
		return nil, err
	}
	list := make([]Override, len(entries))
	for i, e := range entries {
		list[i] = e.Override
	}
	return list, err
}

// SetOverride sets an override, or replaces the one of the same rule and subject. Where there are MaxOverrides, those
// that have ended make room. Errors about Redis are those of Take; others name the field, its value and its bound.
func (s *Store) SetOverride(ctx context.Context, o Override) error {
	e, err := encodeOverride(o)
	if err != nil {
		return err
	}
	set, err := s.changeOverride(ctx, e.field, e.value, MaxOverrides)
	if err == nil && !set {
		if err = s.clearEnded(ctx); err == nil {
			set, err = s.changeOverride(ctx, e.field, e.value, MaxOverrides)
		}
	}
	if err == nil && !set {
		return fmt.Errorf("redis: override: %d are set, the most for one prefix: clear one first", MaxOverrides)
	}
	return err
}

// ClearOverride takes an override away, and tells whether there was one. Its errors are those of Take.
func (s *Store) ClearOverride(ctx context.Context, rule, subject string) (cleared bool, err error) {
	return s.changeOverride(ctx, overrideField(rule, subject), "", "")
}

// clearEnded takes those overrides away that have ended by this process's clock, unless they are set anew meanwhile.
func (s *Store) clearEnded(ctx context.Context) error {
	entries, err := s.overrides(ctx)
	if entries == nil {
		return err
	}
	now := time.Now()
	for _, e := range entries {
		if !e.Ended(now) {
			continue
		}
		if _, err := s.changeOverride(ctx, e.field, "", e.value); err != nil {
			return err
		}
	}
	return nil
}

// overrides reads the hash. The list is nil only if nothing was read.
func (s *Store) overrides(ctx context.Context) ([]overrideEntry, error) {
	reply, err := s.run(ctx, overriding, 1, []any{s.overridesKey()})
	if err != nil {
		return nil, classify(ctx, err)
	}
	pairs, ok := reply.([]any)
	if !ok || len(pairs)%2 != 0 {
		return nil, fmt.Errorf("%w: overrides: reply is %T, want fields and values", sluice.ErrState, reply)
	}
	list, malformed := []overrideEntry{}, []string(nil)
	for i := 0; i < len(pairs); i += 2 {
		field, _ := pairs[i].(string)
		value, _ := pairs[i+1].(string)
		e, err := decodeOverride(field, value)
		if err != nil {
			malformed = append(malformed, fmt.Sprintf("field %.80q: %v", field, err))
			continue
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b overrideEntry) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Subject, b.Subject))
	})
	slices.Sort(malformed)
	if n := len(list); n > MaxOverrides {
		malformed = slices.Insert(malformed, 0, fmt.Sprintf("%d entries, want at most %d: the last are left out", n, MaxOverrides))
		list = list[:MaxOverrides]
	}
	const named = 5
	if rest := len(malformed) - named; rest > 0 {
		malformed = append(malformed[:named], fmt.Sprintf("and %d more", rest))
	}
	if malformed != nil {
		return list, fmt.Errorf("%w: overrides: %s", sluice.ErrState, strings.Join(malformed, "; "))
	}
	return list, nil
}

// changeOverride sets a field where value is not "", and else clears it; see overrides.lua. It tells whether it did.
func (s *Store) changeOverride(ctx context.Context, field, value string, third any) (bool, error) {
	reply, err := s.run(ctx, overriding, 1, []any{s.overridesKey(), field, value, third})
	if err != nil {
		return false, classify(ctx, err)
	}
	n, ok := reply.(int64)
	if !ok {
		return false, fmt.Errorf("%w: override: reply is %v, want a number", sluice.ErrState, reply)
	}
	return n > 0, nil
}

// overridesKey is none of a state or a group: those have more behind the braces.
func (s *Store) overridesKey() string { return s.prefix + ":{overrides}" }
