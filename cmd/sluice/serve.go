package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/gateway"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/telemetry"
)

type serve struct {
	Rules           string        `arg:"" help:"Rule file."`
	Listen          filled        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address to listen on for requests; port 0 picks a free one; off: none. Default: ${default}."`
	Upstream        filled        `placeholder:"URL" help:"Where requests that pass go. Default: a built-in echo of method, path and query."`
	UpstreamTimeout time.Duration `default:"60s" placeholder:"TIME" help:"For the upstream to take a connection, for each part of a request's body, and then for the header of the answer; the whole may take longer. Default: ${default}."`
	Check           filled        `placeholder:"ADDR" help:"Address where nginx, Traefik and Caddy ask whether a request may go on, on any path."`
	CheckPath       filled        `placeholder:"PATH" help:"Path of --listen where they may ask as well."`
	CheckStatus     int           `placeholder:"N" help:"Status of a check's refusals, such as 403 for nginx, 400 to 599. Default: the rule's own."`
	Envoy           filled        `placeholder:"ADDR" help:"Address of Envoy's rate limit service v3, gRPC without TLS."`
	Admin           filled        `placeholder:"ADDR" help:"Address for operators: health, metrics, rules, the most denied; off: none. Default: 127.0.0.1:9180, or none where that is taken."`
	AdminToken      string        `env:"SLUICE_ADMIN_TOKEN" placeholder:"TOKEN" help:"Lets who sends it reset and override on the admin address; at least 16 bytes. Give it as SLUICE_ADMIN_TOKEN, since arguments are no secret. Default: nobody may."`
}

func (serve) Help() string {
	return `Requests that the rules let pass go on to the upstream; the others are answered with 429. SIGINT or SIGTERM ends
it: requests that are under way, and connections that were upgraded, have ten seconds.

The rule file is read again when its text changes, and on SIGHUP. Counters are kept. A file with faults is refused, each
fault is logged with its line and column, and the rules stay as they were.

A check is believed from trusted_proxies alone. /healthz and /readyz of the admin address never depend on Redis.

Example:

    sluice serve examples/rules.yaml
    sluice serve rules.yaml --listen :8080 --upstream http://127.0.0.1:9000
    sluice serve rules.yaml --listen off --check 127.0.0.1:9181 --check-status 403
    sluice serve rules.yaml --listen off --envoy 127.0.0.1:8081`
}

const (
	headerTime = 5 * time.Second  // for a client to send its header
	idleTime   = 2 * time.Minute  // of a connection between requests
	maxHeader  = 256 << 10        // bytes of a request's header
	graceTime  = 10 * time.Second // for requests under way at the end

	off          = "off"            // in place of an address
	defaultAdmin = "127.0.0.1:9180" // of --admin
)

// filled is the value of a flag that is left out, or not empty: an empty one is a variable that somebody forgot to set.
type filled string

// UnmarshalText takes a value as it was typed.
func (f *filled) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("want a value, or the flag left out")
	}
	*f = filled(text)
	return nil
}

// Run serves until ctx ends.
func (c serve) Run(ctx context.Context, s streams) error {
	if err := c.check(); err != nil {
		return misuse{fmt.Errorf("sluice: serve: %w", err)}
	}
	upstream, err := c.upstream()
	if err != nil {
		return misuse{fmt.Errorf("sluice: serve: %w", err)}
	}
	logger := slog.New(slog.NewTextHandler(s.err, nil))
	errorLog := slog.NewLogLogger(logger.Handler(), slog.LevelError)
	eyes, seen := &gateway.Eyes{}, newMetrics(logger)
	limits, err := service.Open(ctx, c.Rules, service.Options{
		Logger: logger, Watch: true, Observer: telemetry.All(eyes, seen.observer), OnBreaker: seen.decisions.BreakerChanged,
	})
	if faults, ok := errors.AsType[rulefile.Errors](err); ok {
		return faults
	}
	if err != nil { // Redis need not be there: it is the file, or a secret that it names
		return misuse{fmt.Errorf("sluice: serve: %w", err)}
	}
	defer limits.Close()
	defer reloadOnHangup(ctx, limits)()

	checks, err := gateway.Check(limits, gateway.CheckOptions{DenyStatus: c.CheckStatus, Logger: logger})
	if err != nil {
		return misuse{fmt.Errorf("sluice: serve: %w", err)}
	}
	admin, err := gateway.Admin(limits, gateway.AdminOptions{Eyes: eyes, Token: c.AdminToken, Metrics: seen.handler(limits)})
	if err != nil {
		return misuse{fmt.Errorf("sluice: serve: %w", err)}
	}
	var open ports
	defer open.close()
	err = errors.Join(
		c.openListen(&open, upstream, limits, checks, errorLog),
		open.http("--check", string(c.Check), "checks on http://%s", gateway.Server(checks, errorLog)),
		open.grpc("--envoy", string(c.Envoy), "envoy on %s", gateway.RateLimitServer(limits)),
		c.openAdmin(&open, logger, gateway.Server(admin, errorLog)),
	)
	if err != nil {
		return fmt.Errorf("sluice: serve: %w", err)
	}
	open.print(s.out)
	for _, rule := range limits.Rules().All() {
		fmt.Fprintln(s.out, describe(rule))
	}
	return open.until(ctx, eyes.SetReady)
}

// check tells which arguments are none, or don't go together.
func (c serve) check() error {
	for _, address := range []struct {
		flag string
		is   filled
	}{{"--listen", c.Listen}, {"--check", c.Check}, {"--envoy", c.Envoy}, {"--admin", c.Admin}} {
		if err := checkAddress(string(address.is)); err != nil {
			return fmt.Errorf("%s %w", address.flag, err)
		}
	}
	switch {
	case c.UpstreamTimeout <= 0:
		return fmt.Errorf("--upstream-timeout %v: want more than 0", c.UpstreamTimeout)
	case c.CheckPath != "" && (c.CheckPath[0] != '/' || strings.ContainsAny(string(c.CheckPath), "?#")):
		return fmt.Errorf("--check-path %q: want a path that begins with a slash", c.CheckPath)
	case c.CheckPath != "" && c.Listen == off:
		return errors.New("--check-path is a path of --listen, which is off")
	case c.CheckStatus != 0 && (c.CheckStatus < 400 || c.CheckStatus > 599):
		return fmt.Errorf("--check-status %d: want 400 to 599", c.CheckStatus)
	case c.CheckStatus != 0 && c.Check == "" && c.CheckPath == "":
		return errors.New("--check-status goes with --check or --check-path")
	case c.Listen == off && (c.Check == "" || c.Check == off) && (c.Envoy == "" || c.Envoy == off):
		return errors.New("--listen is off: want --check or --envoy")
	}
	return nil
}

// checkAddress tells why nobody could listen on an address, as far as can be told before it is tried.
func checkAddress(address string) error {
	if address == "" || address == off {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%q: want HOST:PORT, such as 127.0.0.1:8080 or :8080, or off", address)
	}
	return nil
}

// upstream is where requests go; nil: to the echo.
func (c serve) upstream() (*url.URL, error) {
	if c.Upstream == "" {
		return nil, nil
	}
	return parseUpstream(string(c.Upstream))
}

// openListen opens the port of requests.
func (c serve) openListen(open *ports, upstream *url.URL, limits *service.Service, checks http.Handler, errorLog *log.Logger) error {
	server := &http.Server{
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          errorLog,
	}
	handle := func(backend http.Handler) {
		server.Handler = boundUnread(withCheck(string(c.CheckPath), checks, limits.Middleware(backend)))
	}
	if upstream == nil {
		handle(http.HandlerFunc(echo))
		return open.http("--listen", string(c.Listen), "listening on http://%s, backend: echo", server)
	}
	to := newProxy(upstream, c.UpstreamTimeout, limits.Rules, errorLog)
	handle(to)
	line := "listening on http://%s, backend: " + strings.ReplaceAll(upstream.Redacted(), "%", "%%")
	return open.proxy("--listen", string(c.Listen), line, server, &to.upgrades)
}

// openAdmin opens the port for operators. Several processes on one machine need not be told to share the default: those
// that come later go without. An address that was asked for is another matter, and be it the default one.
func (c serve) openAdmin(open *ports, logger *slog.Logger, server *http.Server) error {
	if c.Admin != "" {
		return open.http("--admin", string(c.Admin), "admin on http://%s", server)
	}
	if err := open.http("--admin", defaultAdmin, "admin on http://%s", server); err != nil {
		logger.Warn("sluice: no port for operators: the default of --admin is taken", "error", err)
	}
	return nil
}

// withCheck answers checks on one path of next; "": none.
func withCheck(path string, checks, next http.Handler) http.Handler {
	if path == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			checks.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// reloadOnHangup reloads the rules at each SIGHUP until the function that it returns is called. What comes of it is in
// the log.
func reloadOnHangup(ctx context.Context, limits *service.Service) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	hangup := make(chan os.Signal, 1) // one that comes during a reload asks for another
	signal.Notify(hangup, syscall.SIGHUP)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				_ = limits.Reload(ctx)
			}
		}
	})
	return func() {
		signal.Stop(hangup)
		cancel()
		running.Wait()
	}
}

// describe is one line about a rule: "token: /token: token_bucket 10/s burst 10 per ip".
func describe(r *policy.Rule) string {
	limits := make([]string, len(r.Limits))
	for i, l := range r.Limits {
		limits[i] = fmt.Sprintf("%s %v per %s", l.Algorithm, l.Strategy.Limit(), l.SubjectName)
		if l.Shadow {
			limits[i] += " (shadow)"
		}
	}
	return fmt.Sprintf("%s: %s: %s", r.Name, r.Match, strings.Join(limits, ", "))
}
