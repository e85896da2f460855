//go:build linux

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// events happen one after the other, in an order that differs from round to round and is the same in each run.
type events struct {
	t     *testing.T
	fleet *fleet
	fault time.Duration
	order *rand.Rand      // of the events, and what edits change
	redis *goredis.Client // around what breaks

	mu      sync.Mutex
	counted map[string]int
	latest  string

	done    chan struct{}
	running sync.WaitGroup
}

type event struct {
	name string
	hit  func(*events)
	heal func(*events) // after a fault's time; nil: it is over at once
}

func all() []event {
	return []event{
		{"edit", func(e *events) { e.fleet.edit(e.t, 10+e.order.IntN(30)) }, nil},
		{"broken edit", (*events).breakFile, (*events).mendFile},
		{"SIGHUP", (*events).hangUp, nil},
		{"override", func(e *events) { e.operate("POST", "/override?rule=api&subject=hot&rate=50/10s&for=1m") }, func(e *events) {
			e.operate("DELETE", "/override?rule=api&subject=hot")
		}},
		{"reset", func(e *events) { e.operate("POST", "/reset?rule=api&subject=hot") }, nil},
		{"Redis killed, back empty", func(e *events) { e.fleet.redis.Kill() }, func(e *events) { e.fleet.redis.Restart() }},
		{"Redis hangs", func(e *events) { e.fleet.redis.Stop() }, func(e *events) { e.fleet.redis.Cont() }},
		{"black hole", func(e *events) { e.fleet.proxy.BlackHole(true) }, func(e *events) { e.fleet.proxy.BlackHole(false); e.fleet.proxy.Reset() }},
		{"replies lost", func(e *events) { e.fleet.proxy.DropReplies(true) }, func(e *events) { e.fleet.proxy.DropReplies(false); e.fleet.proxy.Reset() }},
		{"refused", func(e *events) { e.fleet.proxy.Refuse(true); e.fleet.proxy.Reset() }, func(e *events) { e.fleet.proxy.Refuse(false) }},
		{"connections reset", func(e *events) { e.fleet.proxy.Reset() }, nil},
		{"40 ms slower", func(e *events) { e.fleet.proxy.Delay(40 * time.Millisecond) }, func(e *events) { e.fleet.proxy.Delay(0) }},
		{"flushed", func(e *events) { e.fleet.redis.Flush() }, nil},
		{"scripts flushed", func(e *events) { e.check(e.redis.ScriptFlush(context.Background()).Err()) }, nil},
	}
}

func startEvents(t *testing.T, f *fleet, of form) *events {
	e := &events{
		t: t, fleet: f, fault: of.fault, order: rand.New(rand.NewPCG(1, 2)), redis: f.redis.Client(),
		counted: map[string]int{}, latest: "none", done: make(chan struct{}),
	}
	e.running.Go(func() {
		for {
			for _, i := range e.order.Perm(len(all())) {
				if !e.pause(of.every - of.fault) {
					return
				}
				e.happen(all()[i])
			}
		}
	})
	return e
}

// happen lets one event begin, and end.
func (e *events) happen(one event) {
	e.mu.Lock()
	e.counted[one.name]++
	e.latest = one.name
	e.mu.Unlock()
	one.hit(e)
	if one.heal != nil {
		e.pause(e.fault)
		one.heal(e)
	}
}

// pause waits; false: the soak is over.
func (e *events) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e.done:
		return false
	case <-t.C:
		return true
	}
}

func (e *events) stop() {
	close(e.done)
	e.running.Wait()
}

func (e *events) last() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.latest
}

func (e *events) counts() map[string]int { // once stopped
	return e.counted
}

func (e *events) check(err error) {
	if err != nil {
		e.t.Errorf("%s: %v", e.last(), err)
	}
}

// breakFile puts a faulty file in place: every process must say why it keeps its rules.
func (e *events) breakFile() {
	e.fleet.write(e.t, "rules:\n  - {name: broken, match: /, limits: [{algorithm: magic, limit: 1/s, subject: ip}]}\n")
	e.await("last_error", func(lastError string) bool { return lastError != "" })
}

func (e *events) mendFile() {
	e.fleet.edit(e.t, 20)
	e.await("no last_error", func(lastError string) bool { return lastError == "" })
}

// await waits until /rules of every process says so.
func (e *events) await(what string, ok func(lastError string) bool) {
	for i, p := range e.fleet.processes {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			var rules struct {
				LastError string `json:"last_error"`
			}
			err := p.ask("GET", "/rules", &rules)
			if err == nil && ok(rules.LastError) {
				break
			}
			if time.Now().After(deadline) {
				e.t.Errorf("process %d: /rules says %q (%v), want %s", i, rules.LastError, err, what)
				return
			}
		}
	}
}

func (e *events) hangUp() {
	for _, p := range e.fleet.processes {
		e.check(p.cmd.Process.Signal(syscall.SIGHUP))
	}
}

// operate asks an admin port for what needs Redis, which a process may have to find again after a fault.
func (e *events) operate(method, path string) {
	var err error
	for range 10 {
		if err = e.fleet.processes[0].ask(method, path, nil); err == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	e.check(fmt.Errorf("ten times: %w", err))
}
