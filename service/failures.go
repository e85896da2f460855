package service

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// failures logs the errors of a store, at most one a second: in an outage there is one for each request.
type failures struct {
	logger *slog.Logger
	next   atomic.Int64 // when to log again, ns since the Unix epoch
	silent atomic.Int64 // errors since the last one logged
}

func (f *failures) report(r *http.Request, err error) {
	now := time.Now().UnixNano()
	next := f.next.Load()
	if now < next || !f.next.CompareAndSwap(next, now+int64(time.Second)) {
		f.silent.Add(1)
		return
	}
	f.logger.ErrorContext(r.Context(), "sluice: the store could not decide, the request was answered with 503",
		"error", err, "before", f.silent.Swap(0))
}
