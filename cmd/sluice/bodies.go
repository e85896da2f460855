package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// unreadTime is for the body of a request that is answered without it: refused, echoed, or without an upstream.
const unreadTime = 5 * time.Second

// boundUnread bounds the wait for bodies that next leaves unread. net/http reads them, up to 256 KiB, before it sends the
// answer, so that the connection can carry the next request; without a bound, a client that never sends what it announced
// would keep its connection for ever, however often it is refused. A body that is late ends the connection after the answer.
func boundUnread(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			setReadTime(w, unreadTime) // before anything is written: an answer of some length is sent while next runs
		}
		next.ServeHTTP(w, r)
	})
}

// takeBody is for a next that reads bodies, behind boundUnread: they may take as long as they like, so long as a part of one
// comes within each. What next has left of one when it returns is bounded again. An answer that the upstream gives before
// the body has ended goes on when the rest has come, or is late.
func takeBody(within time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		body := &upload{ReadCloser: r.Body, w: w, within: within}
		defer body.leave() // after a panic, too
		r = r.WithContext(context.WithValue(r.Context(), uploadKey{}, body))
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// setReadTime bounds what is read of the connection from now on; 0: without a bound. The server sets its own for the
// next request.
func setReadTime(w http.ResponseWriter, d time.Duration) {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	_ = http.NewResponseController(w).SetReadDeadline(until) // fails where the connection is gone
}

// upload is a request's body that bounds the wait for each part of it, and remembers how it ended. It is read in another
// goroutine than the handler's, which may outlast that.
type upload struct {
	io.ReadCloser
	w      http.ResponseWriter
	within time.Duration // for a part

	mu   sync.Mutex // the connection's deadline is the server's own again once the handler has left
	left bool
	read bool // to its end

	failed atomic.Bool // malformed, or cut off by the client
	late   atomic.Bool // cut off since no part of it came in time
}

type uploadKey struct{} // in a request's context: its *upload

func (u *upload) Read(p []byte) (int, error) {
	u.bound(u.within, false)
	n, err := u.ReadCloser.Read(p)
	switch {
	case err == nil:
	case err == io.EOF:
		u.bound(0, true)
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.late.Store(true)
	default:
		u.failed.Store(true)
	}
	return n, err
}

func (u *upload) bound(d time.Duration, read bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.left && !u.read {
		u.read = read
		setReadTime(u.w, d)
	}
}

// leave ends the handler's part in it.
func (u *upload) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left = true
	if !u.read {
		setReadTime(u.w, unreadTime)
	}
}

// uploadFault returns the status for a client at whose fault r could not be passed on, and why; 0: it is not.
func uploadFault(r *http.Request) (status int, says string) {
	body, ok := r.Context().Value(uploadKey{}).(*upload)
	switch {
	case ok && body.late.Load():
		return http.StatusRequestTimeout, "The body of the request did not come in time."
	case ok && body.failed.Load():
		return http.StatusBadRequest, "The body of the request is malformed or cut off."
	}
	return 0, ""
}
