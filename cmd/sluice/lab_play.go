package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/sluice-go/sluice/lab/play"
)

type playground struct {
	Addr   string `default:"127.0.0.1:8088" placeholder:"ADDR" help:"Address to serve on; port 0 picks a free one. Default: ${default}."`
	Export string `placeholder:"DIR" help:"Write the page into this folder instead, for any file server."`
}

func (playground) Help() string {
	return `A page in the browser: limits, traffic and costs by sliders, the four algorithms side by side on the same requests, bursts,
outages, and each decision forwards and back in numbers. Eight questions come with it; docs/lesson.md makes a lesson of
them. The decisions are the engine's own, compiled to WebAssembly. Nothing is loaded from elsewhere.

It serves until SIGINT or SIGTERM. With --export it writes a folder and ends: any file server serves that, and nobody
needs this command.

Example:

    sluice lab play
    sluice lab play --addr 127.0.0.1:0
    sluice lab play --export public`
}

// Run serves the playground until ctx ends, or writes it.
func (c playground) Run(ctx context.Context, s streams) error {
	site, err := play.Open()
	if err != nil {
		return fmt.Errorf("sluice: lab: %w", err)
	}
	if c.Export != "" {
		if err := site.Export(c.Export); err != nil {
			return fmt.Errorf("sluice: lab: %w", err)
		}
		fmt.Fprintf(s.out, "written to %s; to see it, serve the folder: a browser runs nothing from a file\n", c.Export)
		return nil
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return fmt.Errorf("sluice: lab: play: --addr: %w", err)
	}
	fmt.Fprintf(s.out, "http://%s/\n", listener.Addr())
	server := &http.Server{Handler: site, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() }) // a file is short: there is nothing to wait for
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("sluice: lab: play: %w", err)
	}
	return nil
}
