package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/redis"
)

// leastOverride is the shortest time of an override: what ends before processes have read it changes nothing, but takes the
// place of the one before.
const leastOverride = 5 * time.Second

type override struct {
	Rules   string         `arg:"" help:"Rule file."`
	Rule    string         `arg:"" optional:"" help:"Name of the rule, or rule/limit where it has several limits."`
	Subject string         `arg:"" optional:"" help:"Who, as a request gives it: an address, or the value of the header, cookie, query or wildcard; global where the limit is. A secret is hashed here."`
	Limit   string         `arg:"" optional:"" help:"The limit for that subject, such as 5000/10s."`
	Key     bool           `help:"SUBJECT is as in keys, as explain shows it."`
	Burst   int64          `placeholder:"N" help:"Burst of a bucket. Default: the limit's count."`
	For     *time.Duration `placeholder:"TIME" help:"How long, such as 2h. Default: until it is cleared."`
	List    bool           `help:"Print the overrides that are set."`
	Clear   bool           `help:"Take the override of the subject away."`
	JSON    bool           `help:"Answer with one JSON object."`
}

func (override) Help() string {
	return `Sets another limit for one subject of a limit, in the file's Redis, without an edit of the file. All processes
with the same store.prefix follow within five seconds, and keep what they know while Redis is away. What the subject has spent
counts on. It goes before an override of the file. A secret subject is hashed here: neither Redis nor the log gets it.

It exits with 1 if Redis can't be asked, or if there is nothing to clear.

Example:

    sluice override rules.yaml api 203.0.113.7 5000/10s --for 2h
    sluice override rules.yaml --list
    sluice override rules.yaml api 203.0.113.7 --clear`
}

// Run asks the file's Redis.
func (c override) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return misuse{fmt.Errorf("sluice: override: %w", err)}
	}
	rules, err := compileRules("override", c.Rules)
	if err != nil {
		return err
	}
	var o redis.Override
	if !c.List {
		if o, err = c.target(rules, time.Now()); err != nil {
			return misuse{fmt.Errorf("sluice: override: %w", err)}
		}
	}
	if rules.Config().Store.Redis == "" {
		return misuse{fmt.Errorf("sluice: override: %s has no store.redis, where overrides are kept: write it under the limit's overrides in the file", c.Rules)}
	}
	st, err := openRedis("override", rules)
	if err != nil {
		return err
	}
	defer st.Close()

	switch {
	case c.List:
		err = c.list(ctx, s.out, st, rules)
	case c.Clear:
		err = c.clear(ctx, s.out, st, o)
	default:
		err = c.set(ctx, s.out, st, o)
	}
	if err == nil || errors.Is(err, errSaid) {
		return err
	}
	return fmt.Errorf("sluice: override: %w", err)
}

// check tells which arguments don't go together.
func (c override) check() error {
	switch {
	case c.List && c.Clear:
		return errors.New("--list and --clear: want one of them")
	case c.List && c.Rule != "":
		return errors.New("--list prints all: want no RULE beside it")
	case c.List:
	case c.Rule == "" || c.Subject == "":
		return errors.New("want RULES RULE SUBJECT LIMIT, or RULES --list")
	case c.Clear && c.Limit != "":
		return errors.New("--clear: want no LIMIT beside it")
	case !c.Clear && c.Limit == "":
		return errors.New("want a LIMIT such as 5000/10s, or --clear")
	}
	switch {
	case c.For != nil && *c.For < leastOverride:
		return fmt.Errorf("--for %v: want at least %v, in which all processes see it", *c.For, leastOverride)
	case c.Burst < 0:
		return fmt.Errorf("--burst %d: want at least 1", c.Burst)
	case (c.List || c.Clear) && (c.For != nil || c.Burst != 0):
		return errors.New("--for and --burst go with a LIMIT")
	}
	return nil
}

// target is the override that the arguments name.
func (c override) target(rules *policy.Rules, now time.Time) (redis.Override, error) {
	limit, err := findLimit(rules, c.Rule)
	if err != nil {
		return redis.Override{}, fmt.Errorf("RULE %w", err)
	}
	key, err := keyOf(limit, c.Subject, c.Key)
	if err != nil {
		return redis.Override{}, fmt.Errorf("SUBJECT: %w", err)
	}
	o := redis.Override{Rule: key.Rule, Subject: key.Subject}
	if c.Clear {
		return o, nil
	}
	if o.Limit, err = sluice.ParseLimit(c.Limit); err != nil {
		return o, err
	}
	o.Limit.Burst = c.Burst
	if c.Burst == 0 && policy.HasBurst(limit.Algorithm) {
		o.Limit.Burst = o.Limit.Count
	}
	if _, err := policy.NewStrategy(limit.Algorithm, o.Limit); err != nil {
		return o, err
	}
	if c.For != nil {
		o.Until = now.Add(*c.For).UTC().Truncate(time.Millisecond)
	}
	return o, nil
}

func (c override) set(ctx context.Context, w io.Writer, st *redis.Store, o redis.Override) error {
	if err := st.SetOverride(ctx, o); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, overrideOf(o, time.Now()))
	}
	_, err := fmt.Fprintf(w, "%s %s: %v %s, in all processes within 5 s\n", o.Rule, printable(o.Subject), o.Limit, end(o))
	return err
}

func (c override) clear(ctx context.Context, w io.Writer, st *redis.Store, o redis.Override) error {
	cleared, err := st.ClearOverride(ctx, o.Rule, o.Subject)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(w, struct {
			Limit   string `json:"limit"`
			Subject string `json:"subject"`
			Cleared bool   `json:"cleared"`
		}{o.Rule, o.Subject, cleared})
	} else if cleared {
		_, err = fmt.Fprintf(w, "%s %s: cleared, in all processes within 5 s\n", o.Rule, printable(o.Subject))
	} else {
		_, err = fmt.Fprintf(w, "%s %s: there is no override\n", o.Rule, printable(o.Subject))
	}
	if err == nil && !cleared {
		err = errSaid
	}
	return err
}

func (c override) list(ctx context.Context, w io.Writer, st *redis.Store, rules *policy.Rules) error {
	set, unread := st.Overrides(ctx)
	if set == nil {
		return unread
	}
	now := time.Now()
	_, unused := service.Overridden(rules, set, now)
	answer := overrides{Overrides: []overrideJSON{}, Warnings: []string{}}
	for _, o := range set {
		answer.Overrides = append(answer.Overrides, overrideOf(o, now))
	}
	for _, warning := range append(causes(unread), causes(unused)...) {
		answer.Warnings = append(answer.Warnings, warning.Error())
	}
	if c.JSON {
		return printJSON(w, answer)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range set {
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\n", printable(o.Rule), printable(o.Subject), o.Limit, end(o))
	}
	if len(set) == 0 {
		fmt.Fprintln(table, "no overrides")
	}
	for _, warning := range answer.Warnings {
		fmt.Fprintf(table, "warning: %s\n", printable(warning))
	}
	return table.Flush()
}

// end is "until ..." or "until it is cleared".
func end(o redis.Override) string {
	switch {
	case o.Until.IsZero():
		return "until it is cleared"
	case o.Ended(time.Now()):
		return "ended " + o.Until.UTC().Format(time.RFC3339)
	}
	return "until " + o.Until.UTC().Format(time.RFC3339)
}

// overrides are what --list answers.
type overrides struct {
	Overrides []overrideJSON `json:"overrides"`
	Warnings  []string       `json:"warnings"`
}

type overrideJSON struct {
	Limit   string `json:"limit"`           // Key.Rule
	Subject string `json:"subject"`         // as in keys
	Rate    string `json:"rate"`            // as in a rule file, with the burst
	Until   string `json:"until,omitempty"` // RFC 3339; left out: until it is cleared
	Ended   bool   `json:"ended"`
}

func overrideOf(o redis.Override, now time.Time) overrideJSON {
	j := overrideJSON{Limit: o.Rule, Subject: o.Subject, Rate: o.Limit.String(), Ended: o.Ended(now)}
	if !o.Until.IsZero() {
		j.Until = o.Until.UTC().Format(time.RFC3339)
	}
	return j
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
