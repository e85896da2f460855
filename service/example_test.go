package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sluice-go/sluice/service"
)

// A program of one's own on a rule file.
func ExampleOpen() {
	limits, err := service.Open(context.Background(), "../examples/rules.yaml", service.Options{})
	if err != nil {
		fmt.Println(err) // every fault, with line and column
		return
	}
	defer limits.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("/fixed", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	server := httptest.NewServer(limits.Middleware(mux)) // or http.ListenAndServe(":8080", limits.Middleware(mux))
	defer server.Close()

	resp, err := http.Get(server.URL + "/fixed")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("RateLimit-Policy"))
	// Output: 200 OK "fixed";q=10;w=1
}

// A limiter of the same file, for work that is no HTTP request.
func ExampleService_Limiter() {
	ctx := context.Background()
	limits, err := service.Open(ctx, "../examples/rules.yaml", service.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()

	if mails, ok := limits.Limiter("token", ""); ok {
		d, err := mails.AllowN(ctx, "newsletter", 4)
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output: true 6 <nil>
}

// In a chain of middlewares, as routers of chi's kind build it: router.Use(limits.Middleware).
func ExampleService_Middleware() {
	limits, err := service.Open(context.Background(), "../examples/rules.yaml", service.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()

	named := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Server", "shop")
			next.ServeHTTP(w, r)
		})
	}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	for _, middleware := range []func(http.Handler) http.Handler{limits.Middleware, named} {
		handler = middleware(handler)
	}

	for range 11 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/token", nil))
		if w.Code != http.StatusOK {
			fmt.Println(w.Header().Get("Server"), w.Code)
		}
	}
	// Output: shop 429
}
