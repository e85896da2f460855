package service

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// startWatching begins to reload the file when its text changes.
//
// The file's directory is watched, and not the file: a new file is often put in the old one's place, and a Kubernetes
// ConfigMap is a link to a file behind another link, ..data, which is swapped. What happens there says only that it is
// time to look: the text decides. A look at every few seconds finds what no directory tells, such as an edit behind a
// link, or on a network's disk.
func (s *Service) startWatching(ctx context.Context) {
	dir := filepath.Dir(s.reader.path)
	w, err := fsnotify.NewWatcher()
	if err == nil {
		if err = w.Add(dir); err != nil {
			_ = w.Close()
		}
	}
	if err != nil {
		s.logger.WarnContext(ctx, "sluice: the system does not tell of changes: the rule file is read at times instead",
			"path", s.reader.path, "every", s.times.look, "error", err)
		w = nil
	}
	s.running.Go(func() { s.watch(ctx, w, dir) })
}

// watch reloads the file until ctx ends, and closes w, which may be nil.
func (s *Service) watch(ctx context.Context, w *fsnotify.Watcher, dir string) {
	var events <-chan fsnotify.Event
	var failures <-chan error
	if w != nil {
		defer w.Close()
		events, failures = w.Events, w.Errors
	}
	look := time.NewTicker(s.times.look)
	defer look.Stop()
	settle := time.NewTimer(0) // the file may have changed since it was opened
	defer settle.Stop()
	waiting, candidate := true, ""
	wait := func() {
		if !waiting { // a directory where much happens postpones nothing
			waiting = true
			settle.Reset(s.times.settle)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-events:
			if !open {
				events = nil
			}
			wait()
		case _, open := <-failures: // events were lost
			if !open {
				failures = nil
			}
			wait()
		case <-look.C:
			if w != nil {
				_ = w.Add(dir) // again, where the directory was made anew
			}
			wait()
		case <-settle.C:
			waiting = false
			if candidate = s.changed(ctx, candidate); candidate != "" {
				wait()
			}
		}
	}
}

// changed reloads the file if its text is another than was tried last, and the same as at the last look, which candidate
// is the hash of: so that a text is not read while it is being written. It returns the hash to look for, or "".
func (s *Service) changed(ctx context.Context, candidate string) string {
	if s.reloading.take(ctx) != nil {
		return ""
	}
	defer s.reloading.end()
	t, err := s.reader.text(ctx)
	if err != nil {
		return ""
	}
	switch t.hash {
	case s.file.tried:
	case candidate:
		_ = s.reload(ctx, t) // logged
	default:
		return t.hash
	}
	return ""
}
