package routers_test

import (
	"net/http"
	"testing"

	"github.com/sluice-go/sluice/examples/routers"
)

func TestClean(t *testing.T) {
	for _, c := range []struct {
		method, path string
		code         int
		location     string
	}{
		{"GET", "/users/7", 200, ""},
		{"POST", "/users/%37?x=//", 200, ""},
		{"GET", "/files/../users/7?x=1", 307, "/users/7?x=1"},
		{"POST", "//users/7", 307, "/users/7"},
		{"PROPFIND", "/users/./7/", 307, "/users/7/"},
		{"CONNECT", "/files/../users/7", 404, ""},
		{"CONNECT", "/users/7", 404, ""},
	} {
		h := routers.Clean(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		w := send(h, c.method, c.path)
		if w.Code != c.code || w.Header().Get("Location") != c.location {
			t.Errorf("%s %s: %d to %q, want %d to %q", c.method, c.path, w.Code, w.Header().Get("Location"), c.code, c.location)
		}
	}
}
