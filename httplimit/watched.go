package httplimit

import (
	"bufio"
	"net"
	"net/http"
)

// watched tells whether OnDeny has written an answer. A body without a status gets the rule's status, not 200. The
// next handler never gets one.
type watched struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *watched) WriteHeader(status int) {
	w.wrote = w.wrote || status >= 200 // an informational status is not the answer
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

func (w *watched) begin() {
	if !w.wrote {
		w.WriteHeader(w.status)
	}
}

// FlushError is what ResponseController.Flush calls: it sends the header, if nothing has yet.
func (w *watched) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush is FlushError for those who ask for an http.Flusher.
func (w *watched) Flush() { _ = w.FlushError() }

// Hijack hands the connection over, and with it the answer.
func (w *watched) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.wrote = w.wrote || err == nil
	return conn, rw, err
}

// Unwrap is how ResponseController finds the rest.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }
