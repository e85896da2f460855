// Load sends requests to one URL from many workers and prints what each second admitted and refused: a rate limit as
// a timeline.
//
//	go run ./cmd/sluice serve examples/rules.yaml &
//	go run ./examples/load --url http://127.0.0.1:8080/token --workers 50 --duration 5s
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: 0 if anything was answered with an admission or a refusal, 1 if nothing was, 2 for misuse.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.SetOutput(stderr)
	target := flags.String("url", "http://127.0.0.1:8080/token", "what to request")
	workers := flags.Int("workers", 50, "how many at once")
	duration := flags.Duration("duration", 5*time.Second, "how long")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	u, err := url.Parse(*target)
	switch {
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "load: unexpected argument %q\n", flags.Arg(0))
		return 2
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		fmt.Fprintf(stderr, "load: --url %q: want http://host/path or https://host/path\n", *target)
		return 2
	case *workers < 1:
		fmt.Fprintf(stderr, "load: --workers %d: want at least 1\n", *workers)
		return 2
	case *duration <= 0:
		fmt.Fprintf(stderr, "load: --duration %v: want more than 0\n", *duration)
		return 2
	}

	fmt.Fprintf(stdout, "%8s %9s %9s %9s\n", "until", "admitted", "refused", "other")
	line := func(label string, s second) {
		fmt.Fprintf(stdout, "%8s %9d %9d %9d\n", label, s.admitted, s.refused, s.other)
	}
	total := drive(ctx, *target, *workers, *duration, func(at time.Duration, s second) {
		line(at.Round(100*time.Millisecond).String(), s)
	})
	line("total", total)
	if total.admitted+total.refused == 0 {
		return 1
	}
	return 0
}
