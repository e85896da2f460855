//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/sluice-go/sluice/lab/play/engine"
)

// fields() returns the fields of a setup: name, and a number's bounds or a choice's choices.
func (*page) fields([]js.Value) any {
	var all []any
	for _, f := range engine.Fields() {
		all = append(all, map[string]any{
			"name": f.Name, "default": f.Default, "least": f.Least, "most": f.Most, "choices": names(f.Choices),
		})
	}
	return all
}

// presets() returns the presets: name, setup, end in ms.
func (*page) presets([]js.Value) any {
	var all []any
	for _, p := range engine.Presets() {
		all = append(all, map[string]any{"name": p.Name, "setup": p.Setup, "end": p.End})
	}
	return all
}

// parse(text) returns a setup's values by name, its shortest text, and what a 0 stands for; or an error.
func (*page) parse(args []js.Value) any {
	s, err := engine.Parse(text(args, 0))
	if err == nil {
		_, err = open(s)
	}
	values := map[string]any{}
	for _, f := range engine.Fields() {
		if n, ok := s.Number(f.Name); ok {
			values[f.Name] = n
		} else if c, ok := s.Choice(f.Name); ok {
			values[f.Name] = c
		}
	}
	return map[string]any{
		"error": message(err), "values": values, "text": s.String(),
		"window": s.WindowMs(), "span": s.SpanMs(),
	}
}

// open(text) begins an experiment, at time 0.
func (p *page) open(args []js.Value) any {
	s, err := engine.Parse(text(args, 0))
	if err != nil {
		return err.Error()
	}
	opened, err := open(s)
	if err != nil {
		return err.Error()
	}
	*p = opened
	return ""
}

func open(s engine.Setup) (p page, err error) {
	if s.View == "race" || s.View == "block" {
		p.trace, err = engine.NewTrace(s)
	} else {
		p.sim, err = engine.New(s)
	}
	return p, err
}

// change(text) goes on under another setup; where the view is one that cannot, it begins anew.
func (p *page) change(args []js.Value) any {
	if p.sim == nil {
		return p.open(args)
	}
	s, err := engine.Parse(text(args, 0))
	if err != nil {
		return err.Error()
	}
	return message(p.sim.Change(s))
}
