package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
)

// ports are the listeners of a process. The last that is opened ends last.
type ports struct {
	all []port
}

// port is a listener and what serves it.
type port struct {
	listener net.Listener
	line     string // printed once it is open
	serve    func(net.Listener) error
	finish   func(context.Context) error // lets what is under way end
	cut      func()                      // ends it at once
}

// http opens an address, for an HTTP server; "" and off: none. line has a %s for the address.
func (p *ports) http(flag, address, line string, server *http.Server) error {
	return p.open(flag, address, line, port{
		serve:  server.Serve,
		finish: server.Shutdown,
		cut:    func() { _ = server.Close() },
	})
}

// proxy is http for a server whose handler has upgrades: connections that carry another protocol by now, of which
// Shutdown knows nothing. They are requests under way like others.
func (p *ports) proxy(flag, address, line string, server *http.Server, upgrades *sync.WaitGroup) error {
	ctx, cancel := context.WithCancel(context.Background())
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	return p.open(flag, address, line, port{
		serve: server.Serve,
		finish: func(ctx context.Context) error {
			if err := server.Shutdown(ctx); err != nil {
				return err
			}
			return await(ctx, upgrades.Wait)
		},
		cut: func() { _ = server.Close(); cancel() },
	})
}

// grpc is http for a gRPC server.
func (p *ports) grpc(flag, address, line string, server *grpc.Server) error {
	return p.open(flag, address, line, port{
		serve:  server.Serve,
		finish: func(ctx context.Context) error { return await(ctx, server.GracefulStop) },
		cut:    server.Stop,
	})
}

// await calls wait until ctx ends at the latest. wait itself ends once the port is cut.
func await(ctx context.Context, wait func()) error {
	done := make(chan struct{})
	go func() { wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *ports) open(flag, address, line string, o port) error {
	if address == "" || address == off {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	o.listener, o.line = l, fmt.Sprintf(line, l.Addr())
	p.all = append(p.all, o)
	return nil
}

// close closes the listeners, for a process that does not get as far as to serve.
func (p *ports) close() {
	for _, o := range p.all {
		_ = o.listener.Close()
	}
}

func (p *ports) print(w io.Writer) {
	for _, o := range p.all {
		fmt.Fprintln(w, o.line)
	}
}

// until serves until ctx ends, or a server fails, then lets requests under way finish for graceTime: those of the last
// port after all others, so that operators can watch. ready is told when all ports serve, and when they are about to end.
func (p *ports) until(ctx context.Context, ready func(bool)) error {
	failed := make(chan error, len(p.all))
	var running sync.WaitGroup
	defer running.Wait()
	for _, o := range p.all {
		running.Go(func() { failed <- o.serve(o.listener) })
	}
	ready(true)
	var failure error
	select {
	case err := <-failed:
		failure = fmt.Errorf("sluice: serve: %w", err)
	case <-ctx.Done():
	}
	ready(false)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceTime)
	defer cancel()
	last := len(p.all) - 1
	errs := make([]error, len(p.all))
	var ending sync.WaitGroup
	for i, o := range p.all[:last] {
		ending.Go(func() { errs[i] = o.end(grace) })
	}
	ending.Wait()
	errs[last] = p.all[last].end(grace)
	if errors.Join(errs...) != nil && failure == nil {
		failure = fmt.Errorf("sluice: serve: requests were cut off after %v", graceTime)
	}
	return failure
}

// end lets what is under way finish until ctx ends, and cuts off the rest.
func (o port) end(ctx context.Context) error {
	err := o.finish(ctx)
	if err != nil {
		o.cut()
	}
	return err
}
