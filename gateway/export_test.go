package gateway

import "net/http"

// Original is the request that a check asks about; nil where it is refused.
func Original(r *http.Request) *http.Request {
	original, _, _ := originalOf(r)
	return original
}
