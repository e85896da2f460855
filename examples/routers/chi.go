package routers

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// Chi returns a chi router behind rules, with a limit of its own for logins. Middlewares have chi's form.
func Chi(rules *httplimit.Middleware, logins *sluice.Limiter) http.Handler {
	r := chi.NewRouter()
	r.Use(rules.Wrap)
	r.With(httplimit.Limit(logins, policy.IP())).Post("/login", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "welcome")
	})
	r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "user ", chi.URLParam(r, "id"))
	})
	r.Get("/files/*", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "file ", chi.URLParam(r, "*"))
	})
	r.Get("/events", Events)
	return Clean(r)
}
