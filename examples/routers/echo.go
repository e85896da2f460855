package routers

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// Echo returns an echo router behind rules, with a limit of its own for logins. echo.WrapMiddleware takes middlewares of
// net/http's form.
func Echo(rules *httplimit.Middleware, logins *sluice.Limiter) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(rules.Wrap))
	e.POST("/login", func(c *echo.Context) error {
		return c.String(http.StatusOK, "welcome")
	}, echo.WrapMiddleware(httplimit.Limit(logins, policy.IP())))
	e.GET("/users/:id", func(c *echo.Context) error { return c.String(http.StatusOK, "user "+c.Param("id")) })
	e.GET("/files/*", func(c *echo.Context) error { return c.String(http.StatusOK, "file "+c.Param("*")) })
	e.GET("/events", echo.WrapHandler(http.HandlerFunc(Events)))
	return Clean(e)
}
