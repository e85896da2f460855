package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/contender"
	"github.com/sluice-go/sluice/bench/inprocess"
	"github.com/sluice-go/sluice/bench/load"
	"github.com/sluice-go/sluice/bench/report"
	"github.com/sluice-go/sluice/bench/server"
)

// session is one run of the program.
type session struct {
	options
	progress *progress
	redis    *server.Server
	core     int // of redis-server; -1: not pinned
	results  []load.Result
	report   report.Report
}

// measure runs all that the options ask for, prints it, and tells whether every bar holds.
func measure(ctx context.Context, o options, args []string, stdout, stderr io.Writer) (held bool, err error) {
	start := time.Now()
	s := &session{options: o, progress: newProgress(stderr, o.expected()), core: -1, report: report.Report{
		Date: start.Format(time.DateOnly), Rounds: o.Rounds, Round: o.Round,
		Command: strings.TrimSpace("go run . " + strings.Join(args, " ")),
	}}
	if err := s.measure(ctx); err != nil {
		return false, err
	}
	s.progress.clear()
	s.report.Took = time.Since(start).Round(time.Second)
	s.report.Rows, s.report.Others = s.rows(), s.others()
	if !o.JSON {
		s.report.Text(stdout)
	} else {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(&s.report); err != nil {
			return false, err
		}
	}
	return s.report.Holds(), s.write(stdout)
}

// measure runs the parts, those on Redis first.
func (s *session) measure(ctx context.Context) (err error) {
	if s.redis, err = server.Start(ctx); err != nil {
		return err
	}
	defer s.redis.Stop()
	if s.report.Machine, err = machine(ctx, s.redis); err != nil {
		return err
	}
	release := s.pin()
	err = s.onRedis(ctx)
	if e := release(); err == nil {
		err = e
	}
	if err != nil || s.part() {
		return err
	}
	return s.inProcess(ctx)
}

// pin gives the server and this process a core each, if there are two, until the function that it returns is called.
func (s *session) pin() (release func() error) {
	release = func() error { return nil }
	cpus := server.CPUs()
	switch {
	case !s.Pin:
		s.report.Pinned = "Not pinned: asked not to."
		return release
	case len(cpus) < 2:
		s.report.Pinned = fmt.Sprintf("Not pinned: it needs two cores of Linux, and there are %d.", len(cpus))
		return release
	}
	undo, err := server.PinCallers(cpus[0])
	if err == nil {
		release = undo
		err = server.Pin(s.redis.PID, cpus[1])
	}
	if err != nil {
		s.report.Pinned = fmt.Sprintf("Not pinned: %v.", err)
		return release
	}
	s.core = cpus[1]
	s.report.Pinned = fmt.Sprintf("Pinned: callers to core %d with GOMAXPROCS 1, redis-server to core %d.", cpus[0], cpus[1])
	return release
}

// onRedis measures what decides in Redis.
func (s *session) onRedis(ctx context.Context) error {
	for _, w := range s.works() {
		k, err := s.work(ctx, server.Nodes{s.redis}, w, s.contenders())
		if err != nil {
			return err
		}
		s.report.Works = append(s.report.Works, k)
	}
	if s.part() {
		return nil
	}
	if err := s.memory(ctx); err != nil {
		return err
	}
	forms, err := s.work(ctx, server.Nodes{s.redis}, load.Renamed(load.Many(16, 10_000), "script-16", "one script by its name and by its text"), contender.Forms())
	if err != nil {
		return err
	}
	s.report.Forms = &forms
	if !s.Full {
		return nil
	}
	return s.growth(ctx)
}

// work measures contenders at one work.
func (s *session) work(ctx context.Context, nodes server.Nodes, w load.Work, contenders []contender.Contender) (report.Work, error) {
	r, err := load.Run(ctx, nodes, w, contenders, load.Plan{Rounds: s.Rounds, Round: s.Round, Step: s.progress.step})
	if err != nil {
		return report.Work{}, err
	}
	s.results = append(s.results, r)
	s.progress.done(s.workTime(len(contenders)))
	return report.NewWork(r, contenders, contenders[0].Name), nil
}

// memory measures what a key takes in Redis.
func (s *session) memory(ctx context.Context) error {
	for _, c := range contender.All() {
		if c.Kind == contender.Floor {
			continue
		}
		s.progress.step("memory of keys in Redis", c.Name)
		perKey, err := load.Memory(ctx, s.redis, c, 10_000)
		if err != nil {
			return err
		}
		s.report.Memory = append(s.report.Memory, report.Memory{Name: c.Name, Bytes: perKey})
	}
	s.progress.done(memoryTime)
	return nil
}

// inProcess measures what decides in this process, on all of its cores.
func (s *session) inProcess(ctx context.Context) error {
	runs := []int{1, max(2, runtime.GOMAXPROCS(0))}
	for _, goroutines := range runs {
		step := func(name string) { s.progress.step(fmt.Sprintf("in process, %d goroutines", goroutines), name) }
		times, err := inprocess.Measure(ctx, goroutines, s.localRounds(), localRound, step)
		if err != nil {
			return err
		}
		s.report.Local = append(s.report.Local, times...)
		s.progress.done(s.localTime())
	}
	var err error
	s.report.LocalMem, err = inprocess.MeasureMemory(ctx, []int{1000, 10_000, 100_000, 1_000_000},
		func(name string) { s.progress.step("memory of keys in process", name) })
	return err
}
