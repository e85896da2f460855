package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluice-go/sluice/policy"
)

type diff struct {
	Old  string `arg:"" help:"Rule file that runs."`
	New  string `arg:"" help:"Rule file that is to run."`
	JSON bool   `help:"Answer with one JSON object."`
}

func (diff) Help() string {
	return `Says what becomes of each limit, and of what subjects have used of it, when one rule file takes another's place: it
keeps usage, starts afresh, is newly enforced, or is gone; and which settings need a restart. It asks no Redis, and reads no
secret.

It exits with 0 if what is used is found again, and with 1 if a limit or a setting starts afresh: then everybody whom it
concerns has a full burst once more.

Example:

    sluice diff rules.yaml rules.new.yaml
    sluice diff --json rules.yaml rules.new.yaml`
}

// Run compares two files.
func (c diff) Run(s streams) error {
	before, err := loadRules("diff", c.Old)
	if err != nil {
		return err
	}
	after, err := loadRules("diff", c.New)
	if err != nil {
		return err
	}
	d, err := policy.Diff(before, after)
	if err != nil {
		return misuse{fmt.Errorf("sluice: diff: %w", err)}
	}
	if c.JSON {
		if err := printJSON(s.out, diffJSONOf(d)); err != nil {
			return err
		}
	} else {
		writeDiff(s.out, d)
	}
	if d.StartsAfresh() {
		return errSaid
	}
	return nil
}

func writeDiff(w io.Writer, d policy.Difference) {
	for _, c := range d.Limits {
		writeChange(w, "limit "+c.Rule+"/"+c.Limit, c)
	}
	for _, c := range d.Settings {
		name := c.Field
		if c.Rule != "" {
			name = "rule " + c.Rule + ": " + c.Field
		}
		writeChange(w, name, c)
	}
	fmt.Fprintf(w, "%d limits as they were, %d changed\n", d.Same, len(d.Limits))
	if d.Restart() {
		fmt.Fprintln(w, "needs a restart: a reload refuses it")
	}
}

func writeChange(w io.Writer, name string, c policy.Change) {
	if c.Effect != policy.EffectNone {
		name += ": " + string(c.Effect)
	}
	if c.Restart {
		name += " (restart)"
	}
	fmt.Fprintln(w, name)
	for _, why := range c.Why {
		fmt.Fprintf(w, "    %s\n", why)
	}
}

// diffJSON is what diff --json prints.
type diffJSON struct {
	StartsAfresh bool         `json:"starts_afresh"`
	Restart      bool         `json:"restart"`
	Same         int          `json:"same"` // limits
	Limits       []changeJSON `json:"limits"`
	Settings     []changeJSON `json:"settings"`
}

type changeJSON struct {
	Rule    string   `json:"rule,omitempty"`
	Limit   string   `json:"limit,omitempty"`
	Field   string   `json:"field,omitempty"`
	Effect  string   `json:"effect,omitempty"` // keeps_usage, starts_afresh, newly_enforced or gone; left out: none on usage
	Restart bool     `json:"restart,omitempty"`
	Why     []string `json:"why"`
}

func diffJSONOf(d policy.Difference) diffJSON {
	list := func(changes []policy.Change) []changeJSON {
		found := []changeJSON{}
		for _, c := range changes {
			found = append(found, changeJSON{c.Rule, c.Limit, c.Field, strings.ReplaceAll(string(c.Effect), " ", "_"), c.Restart, c.Why})
		}
		return found
	}
	return diffJSON{d.StartsAfresh(), d.Restart(), d.Same, list(d.Limits), list(d.Settings)}
}
