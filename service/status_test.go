package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/service"
)

// soon fails if f has not returned in a time that is long for what waits for nobody.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s waits", what)
	}
}

// pausing is a handler that stops those who log a message, from arm to release.
type pausing struct {
	slog.Handler
	message string
	armed   atomic.Bool
	held    chan struct{} // told of each who is
	release chan struct{}
}

func pause(message string) *pausing {
	return &pausing{Handler: slog.DiscardHandler, message: message, held: make(chan struct{}, 100), release: make(chan struct{})}
}

func (h *pausing) Enabled(context.Context, slog.Level) bool { return true }

func (h *pausing) Handle(_ context.Context, r slog.Record) error {
	if h.armed.Load() && r.Message == h.message {
		h.held <- struct{}{}
		<-h.release
	}
	return nil
}

// While rules are being made, whoever asks what runs is told what ran before, at once.
func TestStatusWhileRulesAreMade(t *testing.T) {
	for message, edit := range map[string]string{"sluice: rules": rules(2), "sluice: the rule file is refused, the rules stay as they were": "rules: ["} {
		h := pause(message)
		path := write(t, "", rules(1))
		s := open(t, path, service.Options{Logger: slog.New(h)})
		before := s.Status()
		write(t, path, edit)
		h.armed.Store(true)
		done := make(chan error, 1)
		go func() { done <- s.Reload(t.Context()) }()
		<-h.held
		soon(t, "Status", func() {
			if st := s.Status(); st.Hash != before.Hash || st.Loads != 1 {
				t.Errorf("status %+v, want what ran before", st)
			}
		})
		soon(t, "Process", func() { s.Process().Rules() })
		soon(t, "a request", func() { get(s, "/") })
		soon(t, "Close", func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		close(h.release)
		<-done
		if st := s.Status(); st.Loads+st.Refusals != 2 {
			t.Errorf("status %+v after the reload, want it in there", st)
		}
	}
}

// A disk that hangs under the rule file keeps nobody waiting but the reload, and that no longer than its context: not
// Status, not requests, not the overrides, not Close.
func TestHungDisk(t *testing.T) {
	server := redistest.Start(t)
	var hung atomic.Bool
	release, reading := make(chan struct{}), make(chan struct{}, 100)
	wait := func() {
		if hung.Load() {
			reading <- struct{}{}
			<-release
		}
	}
	path := write(t, "", overridable(server, ""))
	s := open(t, path, service.Options{}.Quickly().Reading(wait, time.Hour))
	watched := open(t, path, service.Options{Watch: true}.Quickly().Looking(time.Millisecond).Reading(wait, time.Hour))
	write(t, path, overridable(server, "headers: x-ratelimit"))

	hung.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range cap(done) { // the second waits for the first
		go func() { done <- s.Reload(ctx) }()
	}
	<-reading
	<-reading // watched's too
	soon(t, "Status", func() { s.Status(); watched.Status() })
	soon(t, "a request", func() { codes(s, "acme", 1) })
	set(t, direct(t, s), overrideOf(t, s, "acme", 6, time.Time{}))
	known(t, s, 1)
	soon(t, "Close", func() {
		if err := watched.Close(); err != nil {
			t.Error(err)
		}
	})
	cancel()
	for range cap(done) {
		soon(t, "Reload", func() {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
	if st := s.Status(); st.Refusals != 0 || st.Loads != 1 {
		t.Errorf("status %+v: want no trace of reloads that were cancelled", st)
	}

	hung.Store(false)
	close(release)
	if err := s.Reload(t.Context()); err != nil {
		t.Errorf("after the disk is back: %v", err)
	}
	if st := s.Status(); st.Loads != 2 {
		t.Errorf("status %+v, want two readings", st)
	}
}

// A read that outlasts its time is a refusal that names the file. The next read tries the path again, up to four that are
// left behind; then the refusal says that they still hang.
func TestHungDiskIsRefused(t *testing.T) {
	var hung atomic.Bool
	var reads atomic.Int64
	release := make(chan struct{})
	path := write(t, "", rules(1))
	const within = 20 * time.Millisecond
	o := service.Options{Logger: slog.New(slog.DiscardHandler)}.Reading(func() {
		if hung.Load() {
			reads.Add(1)
			<-release
		}
	}, within)
	s := open(t, path, o)
	hung.Store(true)
	for i := range 6 {
		err := s.Reload(t.Context())
		want := fmt.Sprintf("service: rule file %s: not read within %v", path, within)
		if i >= 4 {
			want += ": 4 earlier reads still hang"
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if st := s.Status(); !strings.Contains(st.LastError, path) || st.Refusals != 6 || reads.Load() != 4 {
		t.Errorf("%d reads, status %+v: want four that hang, and six refusals", reads.Load(), st)
	}
	hung.Store(false)
	close(release)
	for give := time.Now().Add(20 * time.Second); s.Reload(t.Context()) != nil; {
		if time.Now().After(give) {
			t.Fatal("the disk is back, and the file is still refused")
		}
	}
}

// A good file in the place of one whose read hangs for ever is read.
func TestFileBesideAHungRead(t *testing.T) {
	var reads atomic.Int64
	release := make(chan struct{})
	defer close(release)
	path := write(t, "", rules(1))
	s := open(t, path, service.Options{Logger: slog.New(slog.DiscardHandler)}.Reading(func() {
		if reads.Add(1) == 2 {
			<-release
		}
	}, time.Second))
	if err := s.Reload(t.Context()); err == nil {
		t.Fatal("a read that hangs has ended")
	}
	write(t, path, rules(2))
	if err := s.Reload(t.Context()); err != nil {
		t.Errorf("the file is good again: %v", err)
	}
}

// Close gives up on a goroutine that does not end.
func TestCloseGivesUp(t *testing.T) {
	server := redistest.Start(t)
	h := pause("sluice: overrides")
	s := open(t, write(t, "", overridable(server, "")), service.Options{Logger: slog.New(h)}.Quickly().Closing(20*time.Millisecond))
	h.armed.Store(true)
	set(t, direct(t, s), overrideOf(t, s, "acme", 6, time.Time{}))
	<-h.held
	soon(t, "Close", func() {
		if err := s.Close(); err == nil || !strings.Contains(err.Error(), "has not ended after 20ms") {
			t.Errorf("Close: %v, want that a goroutine has not ended", err)
		}
	})
	close(h.release)
}

// Reloads, reads of the overrides and questions at the same time: each answer is of one reading, and the last file runs
// at the end.
func TestStatusUnderReloads(t *testing.T) {
	server := redistest.Start(t)
	path := write(t, "", overridable(server, ""))
	s := open(t, path, service.Options{Watch: true}.Quickly().Looking(time.Millisecond))
	st, o := direct(t, s), overrideOf(t, s, "acme", 5, time.Time{})
	var stop atomic.Bool
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			for last := int64(0); !stop.Load(); {
				st := s.Status()
				if st.Loads < last || st.Rules != 2 || (st.LastError == "") != st.Refused.IsZero() {
					t.Errorf("status %+v after one of %d readings", st, last)
					return
				}
				last = st.Loads
				s.Process().Rules()
				codes(s, "acme", 1)
			}
		})
	}
	var reloads sync.WaitGroup
	for i := range 20 {
		reloads.Go(func() { _ = s.Reload(t.Context()) })
		write(t, path, overridable(server, fmt.Sprint("# edit ", i)))
		o.Limit.Count = int64(5 + i)
		set(t, st, o)
	}
	reloads.Wait()
	if err := s.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	stop.Store(true)
	asking.Wait()
	await(t, s, "the last override", func(st service.Status) bool { return len(st.Overrides) == 1 && st.Overrides[0].Limit.Count == 24 })
	if got := s.Status().LastError; got != "" {
		t.Errorf("the last file is refused: %s", got)
	}
}
