package routers

import "net/http"

// Clean redirects paths with empty or dot segments to what they mean, before h sees them: net/http's own router does
// that. It refuses CONNECT, the one method whose paths that router leaves alone.
func Clean(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("CONNECT /", http.NotFoundHandler())
	return mux
}
