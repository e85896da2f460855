// Serve listens with one of the routers, behind limits in process: serve chi 127.0.0.1:8091.
package main

import (
	"log"
	"net/http"
	"os"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/algorithm/tokenbucket"
	"github.com/sluice-go/sluice/examples/routers"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
)

func main() {
	router := map[string]func(*httplimit.Middleware, *sluice.Limiter) http.Handler{
		"chi": routers.Chi, "gin": routers.Gin, "echo": routers.Echo,
	}
	if len(os.Args) != 3 || router[os.Args[1]] == nil {
		log.Fatal("usage: serve chi|gin|echo ADDR")
	}
	limit := sluice.Limit{Count: 5, Period: time.Minute, Burst: 3}
	users := policy.RuleConfig{Name: "users", Match: "/users/", Limits: []policy.LimitConfig{{Algorithm: "token_bucket", Limit: limit, Subject: "ip"}}}
	rules := sluice.Must(policy.New(policy.Config{Rules: []policy.RuleConfig{users}}))
	store := local.New(local.Options{})
	handler := router[os.Args[1]](
		httplimit.New(httplimit.Options{Rules: rules, Stores: map[policy.OnOutage]sluice.Store{policy.Local: store}}),
		sluice.New(store, sluice.Must(tokenbucket.New(limit)), "logins"),
	)
	server := &http.Server{Addr: os.Args[2], Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
