package main

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice"
)

type reset struct {
	subjectArgs
	JSON bool `help:"Answer with one JSON object."`
}

func (reset) Help() string {
	return `Forgets what one subject has used of one limit: it has the whole limit again. A key whose words are damaged is healed
by that, too. A process that has just refused the subject may refuse it for up to a second yet.

Example:

    sluice reset rules.yaml login/token_bucket-ip 192.0.2.1
    sluice reset rules.yaml api "$API_KEY"`
}

// Run forgets one key.
func (c reset) Run(ctx context.Context, s streams) error {
	store, _, limit, key, err := c.find("reset")
	if err != nil {
		return err
	}
	defer store.Close()
	ask := sluice.Ask{Strategy: limit.Strategy, Key: key, Mode: sluice.Reset}
	d, err := store.Take(ctx, ask)
	if err != nil {
		return fmt.Errorf("sluice: reset: %w", err)
	}
	name := store.KeyOf(ask)
	if c.JSON {
		return printJSON(s.out, struct {
			Key       string `json:"key"`
			Remaining int64  `json:"remaining"`
		}{name, d.Remaining})
	}
	fmt.Fprintf(s.out, "%s: reset, %d remaining\n", printable(name), d.Remaining)
	return nil
}
