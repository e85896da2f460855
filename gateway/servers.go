package gateway

import (
	"context"
	"log"
	"net/http"
	"time"
)

// The bounds of what a peer may take up.
const (
	maxHeader  = 64 << 10 // bytes of a request's header: twice what nginx passes on unless told
	headerTime = 5 * time.Second
	askTime    = time.Minute            // of a request and its answer: as long as nginx waits unless told
	decideBy   = askTime - 2*headerTime // of a handler: time is left to send what it answers, however late the header came
	idleTime   = 2 * time.Minute
)

// Server returns an HTTP server of h for proxies and operators, who send small requests: with bounds on their size and
// on the time that they take: a minute in all. The context of a request ends after 50 seconds, so that one which a leaky
// bucket would hold for longer is answered, and not cut off: by a Check with 503, or its DenyStatus. It stays charged.
func Server(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler:           http.MaxBytesHandler(bounded(h), maxHeader),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       askTime,
		WriteTimeout:      askTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          errors,
	}
}

// bounded ends the context of each request at decideBy.
func bounded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), decideBy)
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}
