package policy

import "net/http"

// Preflight tells whether req is the question that a browser asks before a cross-origin request: OPTIONS with Origin
// and Access-Control-Request-Method. It is not charged, since the request itself will be. A plain OPTIONS is none.
func Preflight(req *http.Request) bool {
	return req.Method == http.MethodOptions &&
		req.Header.Get("Origin") != "" && req.Header.Get("Access-Control-Request-Method") != ""
}
