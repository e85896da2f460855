package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
	"github.com/sluice-go/sluice/service"
)

type serve struct {
	Rules    string `arg:"" help:"Rule file."`
	Listen   string `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to listen on; port 0 picks a free one. Default: ${default}."`
	Upstream string `placeholder:"URL" help:"Where requests that pass go. Default: a built-in echo of method, path and query."`
}

func (serve) Help() string {
	return `Requests that the rules let pass go on to the upstream; the others are answered with 429. SIGINT or SIGTERM ends
it: requests that are under way have ten seconds.

The rule file is read again when its text changes, and on SIGHUP. Counters are kept. A file with faults is refused, each
fault is logged with its line and column, and the rules stay as they were.

Example:

    sluice serve examples/rules.yaml
    sluice serve rules.yaml --listen :8080 --upstream http://127.0.0.1:9000`
}

const (
	headerTime = 5 * time.Second  // for a client to send its header
	idleTime   = 2 * time.Minute  // of a connection between requests
	graceTime  = 10 * time.Second // for requests under way at the end
)

// Run serves until ctx ends.
func (c serve) Run(ctx context.Context, s streams) error {
	logger := slog.New(slog.NewTextHandler(s.err, nil))
	errorLog := slog.NewLogLogger(logger.Handler(), slog.LevelError)
	backend, what := http.Handler(http.HandlerFunc(echo)), "echo"
	if c.Upstream != "" {
		upstream, err := parseUpstream(c.Upstream)
		if err != nil {
			return misuse{fmt.Errorf("sluice: serve: %w", err)}
		}
		backend, what = proxy(upstream, errorLog), upstream.Redacted()
	}
	limits, err := service.Open(ctx, c.Rules, service.Options{Logger: logger, Watch: true})
	if faults, ok := errors.AsType[rulefile.Errors](err); ok {
		return faults
	}
	if err != nil {
		return fmt.Errorf("sluice: serve: %w", err)
	}
	defer limits.Close()
	defer reloadOnHangup(ctx, limits)()

	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("sluice: serve: --listen: %w", err)
	}
	fmt.Fprintf(s.out, "listening on http://%s, backend: %s\n", listener.Addr(), what)
	for _, rule := range limits.Rules().All() {
		fmt.Fprintln(s.out, describe(rule))
	}
	return until(ctx, &http.Server{
		Handler:           limits.Middleware(backend),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          errorLog,
	}, listener)
}

// reloadOnHangup reloads the rules at each SIGHUP until the function that it returns is called. What comes of it is in
// the log.
func reloadOnHangup(ctx context.Context, limits *service.Service) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1) // one that comes during a reload asks for another
	signal.Notify(hangup, syscall.SIGHUP)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				_ = limits.Reload(ctx)
			}
		}
	})
	return func() {
		signal.Stop(hangup)
		cancel()
		running.Wait()
	}
}

// describe is one line about a rule: "token: /token: token_bucket 10/s burst 10 per ip".
func describe(r *policy.Rule) string {
	limits := make([]string, len(r.Limits))
	for i, l := range r.Limits {
		limits[i] = fmt.Sprintf("%s %v per %s", l.Algorithm, l.Strategy.Limit(), l.SubjectName)
		if l.Shadow {
			limits[i] += " (shadow)"
		}
	}
	return fmt.Sprintf("%s: %s: %s", r.Name, r.Match, strings.Join(limits, ", "))
}

// until serves until ctx ends, then lets requests under way finish for graceTime.
func until(ctx context.Context, server *http.Server, listener net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("sluice: serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close()
		return fmt.Errorf("sluice: serve: requests were cut off after %v", graceTime)
	}
	return nil
}
