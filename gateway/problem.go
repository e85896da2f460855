package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// writeProblem answers with a problem of no type of its own (RFC 9457). detail is for whoever runs the proxy; it holds
// nothing of the request.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	writeJSON(w, struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
}

func writeJSON(w http.ResponseWriter, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // a client that has gone is no fault
}

// seldom logs a line a second at most: what is wrong with a proxy is wrong with each of its requests.
type seldom struct {
	logger *slog.Logger
	next   atomic.Int64 // when to log again, ns since the Unix epoch
	silent atomic.Int64 // lines left out since the last
}

func (s *seldom) log(ctx context.Context, msg string, args ...any) {
	now, next := time.Now().UnixNano(), s.next.Load()
	if now < next || !s.next.CompareAndSwap(next, now+int64(time.Second)) {
		s.silent.Add(1)
		return
	}
	s.logger.WarnContext(ctx, msg, append(args, "before", s.silent.Swap(0))...)
}
