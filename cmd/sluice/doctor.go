package main

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/service"
)

type doctor struct {
	Rules string `arg:"" help:"Rule file."`
	JSON  bool   `help:"Answer with one JSON object."`
}

func (doctor) Help() string {
	return `Looks whether the Redis of a rule file is fit for it, a line for each check: reach, version, the user's rights, TIME in
scripts, the clock, round trips, eviction, slots, replicas, and the time of a script on the server. Where something is
not as it should be, the line below says what to do. It writes a few keys under the file's prefix, and deletes them. A few
checks need a user with +info.

It exits with 1 if a check fails; a warning is none.

Example:

    sluice doctor rules.yaml
    sluice doctor --json rules.yaml`
}

// Run looks at the Redis of a rule file.
func (c doctor) Run(ctx context.Context, s streams) error {
	rules, err := compileRules("doctor", c.Rules)
	if err != nil {
		return err
	}
	answer := diagnosis{File: c.Rules, Healthy: true, Findings: []findingJSON{}}
	service.Diagnose(ctx, rules, func(f service.Finding) {
		answer.Healthy = answer.Healthy && f.Health != service.HealthFail
		answer.Findings = append(answer.Findings, findingJSON{f.Check, string(f.Health), f.Found, f.Advice})
		if c.JSON {
			return
		}
		fmt.Fprintf(s.out, "%-4s  %-9s  %s\n", f.Health, f.Check, f.Found)
		if f.Advice != "" {
			fmt.Fprintf(s.out, "%17s%s\n", "", f.Advice)
		}
	})
	if c.JSON {
		if err := printJSON(s.out, answer); err != nil {
			return err
		}
	}
	if !answer.Healthy {
		return errSaid
	}
	return nil
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	File     string        `json:"file"`
	Healthy  bool          `json:"healthy"` // nothing failed
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Check  string `json:"check"`
	Health string `json:"health"` // ok, warn or fail
	Found  string `json:"found"`
	Advice string `json:"advice,omitempty"`
}
