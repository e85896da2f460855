package main

import (
	"context"
	"io"
	"net/http"
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

// takeBody is for a next that reads bodies, behind boundUnread: they may take as long as they like. What next has left
// of one when it returns is bounded again.
func takeBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		setReadTime(w, 0)
		body := &upload{ReadCloser: r.Body}
		defer func() { // after a panic, too
			if !body.read.Load() {
				setReadTime(w, unreadTime)
			}
		}()
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

// upload is a request's body that remembers how it ended. It is read in another goroutine than the handler's.
type upload struct {
	io.ReadCloser
	read   atomic.Bool // to its end
	failed atomic.Bool // malformed, or cut off by the client
}

type uploadKey struct{} // in a request's context: its *upload

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	switch err {
	case nil:
	case io.EOF:
		u.read.Store(true)
	default:
		u.failed.Store(true)
	}
	return n, err
}

// uploadFailed tells whether the client is at fault that r could not be passed on.
func uploadFailed(r *http.Request) bool {
	body, ok := r.Context().Value(uploadKey{}).(*upload)
	return ok && body.failed.Load()
}
