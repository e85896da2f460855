package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/lab"
)

// output are the flags that all experiments share.
type output struct {
	CSV    bool   `name:"csv" xor:"form" help:"Print CSV."`
	JSON   bool   `name:"json" xor:"form" help:"Print one JSON object: experiment, params, results."`
	Report string `placeholder:"FILE" help:"Also write one page, with charts, that stands alone."`
}

// run runs an experiment and prints what it found. Progress goes to standard error.
func (o output) run(k *kong.Context, s streams, experiment func(progress func(string)) (lab.Result, error)) error {
	name := k.Selected().Name
	if err := writable("--report", o.Report); err != nil {
		return misuse{fmt.Errorf("sluice: lab: %s: %w", name, err)}
	}
	r, err := experiment(func(line string) { fmt.Fprintf(s.err, "%s: %s\n", name, line) })
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("sluice: lab: %s: interrupted", name)
	case err != nil:
		return fmt.Errorf("sluice: %w", err)
	}
	return o.print(k, s, r, r.WriteText)
}

// print writes a result in the form that is asked for, and the report. text writes it for people.
func (o output) print(k *kong.Context, s streams, r lab.Result, text func(io.Writer) error) error {
	name := k.Selected().Name
	r.Command = again(k.Args)
	write := text
	switch {
	case o.CSV:
		write = r.WriteCSV
	case o.JSON:
		write = r.WriteJSON
	}
	if err := write(s.out); err != nil {
		return fmt.Errorf("sluice: lab: %s: %w", name, err)
	}
	return o.also(s, name, "--report", o.Report, r.WriteHTML)
}

// also writes a file that a flag asks for, if it does.
func (o output) also(s streams, name, flag, file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	if err := writeFile(file, write); err != nil {
		return fmt.Errorf("sluice: lab: %s: %s: %w", name, flag, err)
	}
	fmt.Fprintf(s.err, "%s: written to %s\n", name, file)
	return nil
}

// writable is an error if a file that a flag names has no folder to be in, or is one.
func writable(flag, file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%s: %s is a folder: want a file", flag, file)
	}
	return nil
}

// again is the command line that runs the same once more, as a shell reads it.
func again(args []string) string {
	words := []string{"sluice"}
	for _, a := range args {
		if a == "" || strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%") != "" {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// writeFile makes a file of what write writes.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
