// Command bench measures this module's stores side by side with other Go limiters: on a private redis-server that it
// starts, and in process. It prints each ratio that the module promises and whether it holds.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

const description = `Measures limiters side by side and says whether what Sluice promises of its speed holds.

Contenders take turns in short rounds on a private redis-server; a figure is the median over rounds, a ratio the median of
the ratios within a round. The server has a core to itself, and the callers have one.

Examples:

  go run .                                      the two-minute form
  go run . --only many-128 --rounds 3           one work
  go run . --only hot-128 --contenders sluice   one work, sluice and redis_rate alone
  go run . --full --docs ../docs                everything, and docs/performance.md`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program until ctx ends; it returns the exit code: 0, 1 if it failed or a bar does not hold under
// --strict, 2 if it was asked wrongly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	exit := -1 // set by --help
	parser, err := kong.New(&o, kong.Name("bench"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }))
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	_, err = parser.Parse(args)
	switch {
	case exit >= 0:
		return exit
	case err == nil:
		err = o.check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\nbench --help says more.\n", err)
		return 2
	}
	if o.List {
		o.list(stdout)
		return 0
	}
	held, err := measure(ctx, o, args, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	case o.Strict && !held:
		return 1
	}
	return 0
}
