package gateway

import (
	"log"
	"net/http"
	"time"
)

// The bounds of what a peer may take up.
const (
	maxHeader  = 64 << 10 // bytes of a request's header: twice what nginx passes on unless told
	headerTime = 5 * time.Second
	askTime    = time.Minute // of a request and its answer: as long as nginx waits unless told
	idleTime   = 2 * time.Minute
)

// Server returns an HTTP server of h for proxies and operators, who send small requests: with bounds on their size and
// on the time that they take. A request that a leaky bucket holds for more than a minute is given up.
func Server(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler:           http.MaxBytesHandler(h, maxHeader),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       askTime,
		WriteTimeout:      askTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          errors,
	}
}
