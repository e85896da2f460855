package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/service"
)

// A program that answers nginx's checks, and shows operators what it does.
func Example() {
	eyes := &gateway.Eyes{}
	limits, err := service.Open(context.Background(), "../examples/nginx/rules.yaml", service.Options{Observer: eyes, Logger: silent()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer limits.Close()
	checks, err := gateway.Check(limits, gateway.CheckOptions{DenyStatus: http.StatusForbidden})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for range 4 { // as nginx asks
		r := httptest.NewRequest(http.MethodGet, "http://sluice/", nil)
		r.RemoteAddr = "127.0.0.1:40000"
		r.Header.Set("X-Original-Method", "POST")
		r.Header.Set("X-Original-URI", "/login")
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		w := httptest.NewRecorder()
		checks.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	for _, denied := range eyes.Top.List() {
		fmt.Println(denied.Limit, denied.Count, denied.Subject == gateway.HashSubject("192.0.2.1"))
	}
	// Output:
	// 200 "login";r=2;t=12
	// 200 "login";r=1;t=24
	// 200 "login";r=0;t=36
	// 403 "login";r=0;t=12
	// login 1 true
}
