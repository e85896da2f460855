// Command sluice serves, checks and explains rules. It has flags and listeners only: what it does is in the packages
// of the module.
//
// It exits with 0 if all went well, 1 if the answer is no (a rule file has faults, the server failed), and 2 if it
// was asked wrongly.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop()                                          // a second signal ends the program at once
		time.AfterFunc(lastTime, func() { os.Exit(1) }) // of what does not look at ctx, such as a read of a pipe
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// lastTime is what the program has after a signal: more than requests under way have in serve.
const lastTime = graceTime + 5*time.Second

// commands are the command line, as kong reads it.
type commands struct {
	Version kong.VersionFlag `help:"Print the version, and the commit that it was built of."`

	Serve    serve       `cmd:"" help:"Limit requests by a rule file, in front of an upstream or of a built-in echo."`
	Check    check       `cmd:"" help:"Say whether a rule file is valid, and where it is not."`
	Explain  explain     `cmd:"" help:"Say what the rules make of a request, and why it would be refused."`
	Inspect  inspect     `cmd:"" help:"Say what one subject has left under one limit."`
	Reset    reset       `cmd:"" help:"Forget what one subject has used of one limit."`
	Override override    `cmd:"" help:"Set another limit for one subject, live in all processes; list and clear them."`
	Diff     diff        `cmd:"" help:"Say which limits keep usage, and which start afresh, when one rule file takes another's place."`
	Doctor   doctor      `cmd:"" help:"Say whether the Redis of a rule file is fit for it."`
	Script   script      `cmd:"" help:"Print the Lua of an algorithm, as Redis runs it."`
	Lab      experiments `cmd:"" help:"Run experiments on limiters, and draw them."`
}

// streams are where a command prints.
type streams struct{ out, err io.Writer }

// run is the program until ctx ends; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exit := -1 // set by --help
	parser, err := kong.New(&commands{},
		kong.Name("sluice"),
		kong.Description("A rate limiter for services that share one budget."),
		kong.Vars{"version": version()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(streams{stdout, stderr}),
		kong.KindMapper(reflect.String, kong.MapperFunc(asTyped)),
	)
	if err != nil {
		fmt.Fprintf(stderr, "sluice: %v\n", err)
		return 2
	}
	command, err := parser.Parse(args)
	switch {
	case exit >= 0:
		return exit
	case err != nil:
		fmt.Fprintf(stderr, "sluice: %v\nsluice --help says more.\n", err)
		return 2
	}
	err = command.Run()
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSaid):
		return 1
	}
	fmt.Fprintln(stderr, err)
	if _, ok := errors.AsType[misuse](err); ok {
		return 2
	}
	return 1
}

// version is what the build knows of itself: the module's version, or the commit, of a build in the repository.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "sluice, of unknown version"
	}
	text := "sluice " + info.Main.Version + ", " + info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += ", " + s.Value
		}
	}
	return text
}

// asTyped takes a text as it was typed, byte for byte: kong's own way puts U+FFFD in place of bytes that are no UTF-8, and
// the subject of an operator would be another than that of a request.
func asTyped(ctx *kong.DecodeContext, target reflect.Value) error {
	word, err := ctx.Scan.PopValue("string")
	if err == nil {
		target.SetString(word.String())
	}
	return err
}

// misuse is an error of the one who asked.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// errSaid ends a command whose answer is no, and which has printed it.
var errSaid = errors.New("sluice: no")
