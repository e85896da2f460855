package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-go/sluice/policy/rulefile"
)

type check struct {
	Rules string `arg:"" help:"Rule file."`
	JSON  bool   `help:"Answer with one JSON object."`
}

func (check) Help() string {
	return `Prints every fault of the file, with its line and column, and exits with 1 if there is one. Of a valid file it prints
which broader rules each rule hides, and on stderr what its author may not expect. Variables and files that the rules
name are not read.

Example:

    sluice check examples/rules.yaml
    sluice check --json examples/rules.yaml`
}

// Run checks the file. A file that can't be read is misuse: there is no answer.
func (c check) Run(s streams) error {
	config, err := rulefile.Load(c.Rules)
	faults, ok := errors.AsType[rulefile.Errors](err)
	if err != nil && !ok {
		return misuse{fmt.Errorf("sluice: check: %w", err)}
	}
	answer := checked{File: c.Rules, Valid: err == nil, Rules: len(config.Rules), Faults: []fault{}, Hidden: []hidden{}, Warnings: config.Warnings()}
	for _, f := range faults {
		answer.Faults = append(answer.Faults, fault{f.Line, f.Column, f.Field, f.Msg})
	}
	for _, h := range config.Hidden() {
		answer.Hidden = append(answer.Hidden, hidden{h.Rule, h.Hides})
	}
	if answer.Warnings == nil {
		answer.Warnings = []string{}
	}
	if c.JSON {
		err = answer.writeJSON(s.out)
	} else {
		answer.write(s, faults)
		err = nil
	}
	if err == nil && !answer.Valid {
		err = errSaid
	}
	return err
}

// checked is what check found.
type checked struct {
	File     string   `json:"file"`
	Valid    bool     `json:"valid"`
	Rules    int      `json:"rules"`
	Faults   []fault  `json:"faults"`
	Hidden   []hidden `json:"hidden"`
	Warnings []string `json:"warnings"`
}

// hidden is a rule, and the broader rules that do not hold for its requests.
type hidden struct {
	Rule  string   `json:"rule"`
	Hides []string `json:"hides"`
}

type fault struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (c checked) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

func (c checked) write(s streams, faults rulefile.Errors) {
	for _, w := range c.Warnings {
		fmt.Fprintf(s.err, "%s: warning: %s\n", c.File, w)
	}
	if c.Valid {
		fmt.Fprintf(s.out, "%s: valid, %d rules\n", c.File, c.Rules)
		for _, h := range c.Hidden {
			fmt.Fprintf(s.out, "%s: its requests are not limited by the broader %s\n", h.Rule, strings.Join(h.Hides, ", "))
		}
		return
	}
	fmt.Fprintln(s.err, faults)
}
