package routers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/httplimit"
	"github.com/sluice-go/sluice/policy"
)

// Gin returns a gin engine behind rules, with a limit of its own for logins. A handler of gin's asks by Check, and
// GinMiddleware makes one of what has the form of net/http.
func Gin(rules *httplimit.Middleware, logins *sluice.Limiter) http.Handler {
	e := gin.New()
	e.UseEscapedPath = true
	e.Use(func(c *gin.Context) {
		if !rules.Check(c.Writer, c.Request) {
			c.Abort()
		}
	})
	e.POST("/login", GinMiddleware(httplimit.Limit(logins, policy.IP())), func(c *gin.Context) {
		c.String(http.StatusOK, "welcome")
	})
	e.GET("/users/:id", func(c *gin.Context) { c.String(http.StatusOK, "user %s", c.Param("id")) })
	e.GET("/files/*name", func(c *gin.Context) { c.String(http.StatusOK, "file %s", c.Param("name")) })
	e.GET("/events", gin.WrapF(Events))
	return Clean(e)
}

// GinMiddleware makes a gin handler of a middleware: what the middleware does not hand on is aborted.
func GinMiddleware(m func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		passed := false
		m(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			passed, c.Request = true, r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}
