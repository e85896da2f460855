package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/redis"
)

// subjectArgs say whose state a command is about.
type subjectArgs struct {
	Rules   string `arg:"" help:"Rule file."`
	Rule    string `arg:"" help:"Rule, or rule/limit where the rule has several limits."`
	Subject string `arg:"" optional:"" help:"Who, as a request gives it: an address, or the value of the header, cookie, query or wildcard. A secret is hashed here. Left out where the limit is global."`
	Key     bool   `help:"SUBJECT is as in keys, as explain shows it."`
}

// find opens the store and makes an ask about the subject. The caller closes the store.
func (a subjectArgs) find(command string) (*redis.Store, *policy.Rules, *policy.Limit, sluice.Key, error) {
	rules, err := compileRules(command, a.Rules)
	if err != nil {
		return nil, nil, nil, sluice.Key{}, err
	}
	limit, err := findLimit(rules, a.Rule)
	if err != nil {
		return nil, nil, nil, sluice.Key{}, misuse{fmt.Errorf("sluice: %s: RULE %w", command, err)}
	}
	key, err := keyOf(limit, a.Subject, a.Key)
	if err != nil {
		return nil, nil, nil, sluice.Key{}, misuse{fmt.Errorf("sluice: %s: SUBJECT: %w", command, err)}
	}
	store, err := openRedis(command, rules)
	return store, rules, limit, key, err
}

type inspect struct {
	subjectArgs
	JSON bool `help:"Answer with one JSON object."`
}

func (inspect) Help() string {
	return `Says what one subject has left under one limit now, when all is back, and what stands in its key. It charges nothing.
A subject that is a secret is hashed here; in its place, --key takes what explain shows. Requests that lack the header, cookie
or query are counted by address: --key 192.0.2.1.

It exits with 0 if something is kept of the subject, and with 1 if nothing is: it has the whole limit.

Example:

    sluice inspect rules.yaml login/token_bucket-ip 192.0.2.1
    sluice inspect rules.yaml api "$API_KEY" --json`
}

// Run looks at one key.
func (c inspect) Run(ctx context.Context, s streams) error {
	store, rules, limit, key, err := c.find("inspect")
	if err != nil {
		return err
	}
	defer store.Close()
	limit = overriddenLimit(ctx, s, rules, limit, store)
	st := limit.StrategyFor(key.Subject, time.Now())
	entry, err := store.Inspect(ctx, sluice.Ask{Strategy: st, Key: key, N: 1})
	if err != nil && !errors.Is(err, sluice.ErrState) {
		return fmt.Errorf("sluice: inspect: %w", err)
	}
	found := inspected{limit: limit, strategy: st, subject: key.Subject, entry: entry, err: err}
	if c.JSON {
		if err := printJSON(s.out, found.json()); err != nil {
			return err
		}
	} else {
		found.write(s.out)
	}
	if err == nil && len(entry.Words) == 0 {
		return errSaid
	}
	return nil
}

// overriddenLimit is the limit with the overrides that are set in Redis.
func overriddenLimit(ctx context.Context, s streams, rules *policy.Rules, limit *policy.Limit, store *redis.Store) *policy.Limit {
	for _, rule := range withOverrides(ctx, s, "inspect", rules, store).All() {
		for i := range rule.Limits {
			if rule.Limits[i].KeyRule == limit.KeyRule {
				return &rule.Limits[i]
			}
		}
	}
	return limit
}

// inspected is what inspect found.
type inspected struct {
	limit    *policy.Limit
	strategy sluice.Strategy // the limit's own, or an override's
	subject  string          // as in keys
	entry    redis.Entry
	err      error // the words are damaged
}

func (i inspected) write(w io.Writer) {
	d := i.entry.Decision
	about := ""
	if i.strategy != i.limit.Strategy {
		about = ", by an override"
	}
	fmt.Fprintf(w, "limit      %s: %s %v per %s%s\n", i.limit.KeyRule, i.limit.Algorithm, i.strategy.Limit(), i.limit.SubjectName, about)
	fmt.Fprintf(w, "subject    %s\n", printable(i.subject))
	fmt.Fprintf(w, "key        %s\n", printable(i.entry.Key))
	switch {
	case i.err != nil:
		fmt.Fprintf(w, "damaged    %s; sluice reset heals it\n", printable(i.err.Error()))
	case len(i.entry.Words) == 0:
		fmt.Fprintf(w, "remaining  %d of %d: nothing is kept of this subject\n", d.Remaining, d.Limit)
		return
	default:
		fmt.Fprintf(w, "remaining  %d of %d\n", d.Remaining, d.Limit)
		if d.RetryAfter > 0 {
			fmt.Fprintf(w, "next       in %s\n", wait(d.RetryAfter))
		}
		fmt.Fprintf(w, "full       in %s, at %s\n", wait(d.ResetAfter), fullAt(d).Format(time.RFC3339))
	}
	switch {
	case i.entry.TTL == redis.NoTTL:
		fmt.Fprintln(w, "ttl        none: its next charge sets one")
	case i.entry.TTL > 0:
		fmt.Fprintf(w, "ttl        %s\n", wait(i.entry.TTL))
	}
	script, _ := i.strategy.Lua()
	fmt.Fprint(w, "words     ")
	for _, name := range script.Words {
		if value, ok := i.entry.Words[name]; ok {
			fmt.Fprintf(w, " %s=%s", name, printable(fmt.Sprintf("%.40s", value)))
		}
	}
	fmt.Fprintln(w)
}

// fullAt is when the state is as good as new, by the server's clock.
func fullAt(d sluice.Decision) time.Time { return time.UnixMicro(d.At).Add(d.ResetAfter).UTC() }

// inspectedJSON is what inspect --json prints. Times are seconds.
type inspectedJSON struct {
	Limit      string            `json:"limit"` // as in keys
	Algorithm  string            `json:"algorithm"`
	Rate       string            `json:"rate"`
	Subject    string            `json:"subject"` // as in keys
	Key        string            `json:"key"`
	Known      bool              `json:"known"` // something is kept
	Error      string            `json:"error,omitempty"`
	Remaining  int64             `json:"remaining"`
	Most       int64             `json:"most"`
	RetryAfter *float64          `json:"retry_after_s,omitempty"` // until one unit passes
	ResetAfter *float64          `json:"reset_after_s,omitempty"`
	FullAt     *time.Time        `json:"full_at,omitempty"`
	TTL        *float64          `json:"ttl_s,omitempty"` // left out where it has none, or the user may not ask
	Words      map[string]string `json:"words"`
}

func (i inspected) json() inspectedJSON {
	d := i.entry.Decision
	j := inspectedJSON{
		Limit: i.limit.KeyRule, Algorithm: i.limit.Algorithm, Rate: i.strategy.Limit().String(), Subject: i.subject,
		Key: i.entry.Key, Known: len(i.entry.Words) > 0, Words: i.entry.Words,
	}
	if j.Words == nil {
		j.Words = map[string]string{}
	}
	if i.entry.TTL > 0 {
		j.TTL = seconds(i.entry.TTL)
	}
	if i.err != nil {
		j.Error = i.err.Error()
		return j
	}
	full := fullAt(d)
	j.Remaining, j.Most, j.FullAt = d.Remaining, d.Limit, &full
	j.RetryAfter, j.ResetAfter = seconds(d.RetryAfter), seconds(d.ResetAfter)
	return j
}
