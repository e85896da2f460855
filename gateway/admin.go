package gateway

import (
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/telemetry"
)

// AdminOptions are the choices of an [Admin].
type AdminOptions struct {
	Eyes *Eyes // required: the Observer of the Service

	// Token lets those who send it as "Authorization: Bearer TOKEN" reset subjects and set other limits for them. "":
	// nobody may. At least 16 bytes, without spaces around them, which do not count.
	Token string

	Metrics http.Handler // of /metrics; nil: none
}

// Admin returns the handler of an operator's port. It shows what is nobody's business outside, so put it on localhost,
// or on a network of one's own.
//
//	GET  /healthz    200 as long as the process serves
//	GET  /readyz     200 once the rules are loaded and all listeners are open, else 503; whether it is degraded is in the body
//	GET  /rules      path and hash of the rules, when they were loaded, why the last reload was refused
//	GET  /status     the same with overrides and figures of the process
//	GET  /top        the 100 subjects that were denied most in five minutes, hashed
//	GET  /explain    what this process would answer: path, method, ip, header (NAME:VALUE, may be given again), cost
//	GET  /metrics    those of AdminOptions.Metrics
//	POST /reset      rule, limit, subject: forgets what the subject has used; with the token
//	POST /override   rule, limit, subject, rate, burst, for: another limit for the subject; with the token. Without for
//	                 it holds until it is cleared
//	DELETE /override rule, limit, subject: clears it; with the token
//
// A parameter that is unknown, empty or there twice is 400. On a connection to a loopback address the Host must be
// localhost, an address or none, else it is 421: a web page whose name has come to mean 127.0.0.1 reads nothing here.
//
// /healthz and /readyz ask nobody, so that an outage of Redis, in which each process goes on deciding, takes no process
// out of service.
func Admin(s *service.Service, o AdminOptions) (http.Handler, error) {
	const leastToken = 16
	o.Token = strings.TrimSpace(o.Token) // a newline, as files end in, can't be sent
	switch {
	case o.Eyes == nil:
		return nil, errors.New("gateway: Admin: Eyes: missing")
	case o.Token != "" && len(o.Token) < leastToken:
		return nil, errors.New("gateway: Admin: Token: too short: want at least 16 bytes, or none to keep reset and override off")
	}
	o.Eyes.follow(s)
	a := &admin{limits: s, eyes: o.Eyes, token: o.Token, started: time.Now()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", a.ready)
	mux.HandleFunc("GET /rules", a.rules)
	mux.HandleFunc("GET /status", a.status)
	mux.HandleFunc("GET /top", a.top)
	mux.HandleFunc("GET /explain", a.explain)
	mux.HandleFunc("POST /reset", a.guarded(a.reset))
	mux.HandleFunc("POST /override", a.guarded(a.override))
	mux.HandleFunc("DELETE /override", a.guarded(a.clear))
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	return notRebound(mux), nil
}

// notRebound lets requests to loopback addresses pass only by names that nobody but their resolver gives them: a browser
// that shows a page of evil.example sends that as Host, wherever the name leads (DNS rebinding). HTTP/1.0 needs no Host,
// and browsers do not send it.
func notRebound(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if onLoopback(r) && r.Host != "" && !ownName(r.Host) {
			writeProblem(w, http.StatusMisdirectedRequest, "Host: want localhost or an address, on a loopback address")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onLoopback tells whether r came to a loopback address; false where there is no server to tell.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	to, err := netip.ParseAddrPort(local.String())
	return err == nil && to.Addr().Unmap().IsLoopback()
}

// ownName tells whether a Host is localhost or an address, with or without a port.
func ownName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") || strings.EqualFold(host, "localhost.") {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

type admin struct {
	limits  *service.Service
	eyes    *Eyes
	token   string
	started time.Time
}

// readiness is what /readyz answers, and part of /status.
type readiness struct {
	Ready    bool `json:"ready"`
	Degraded bool `json:"degraded"` // decisions are made without Redis, as far as this process has seen
}

func (a *admin) readiness() readiness {
	return readiness{Ready: a.eyes.ready.Load(), Degraded: degraded(a.limits, a.limits.Status(), time.Now())}
}

func (a *admin) ready(w http.ResponseWriter, _ *http.Request) {
	r, status := a.readiness(), http.StatusOK
	if !r.Ready {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, r)
}

// rulesJSON is what /rules answers, and part of /status.
type rulesJSON struct {
	Path      string     `json:"path"`
	Hash      string     `json:"hash"` // SHA-256 of the file's text, as sha256sum prints it
	Loaded    time.Time  `json:"loaded"`
	Mode      string     `json:"mode"`
	Rules     int        `json:"rules"`
	LastError string     `json:"last_error"` // why the file as it is now is refused; "": it runs
	Refused   *time.Time `json:"refused,omitempty"`
}

func rulesOf(st service.Status) rulesJSON {
	r := rulesJSON{
		Path: st.Path, Hash: st.Hash, Loaded: st.Loaded.UTC(), Mode: string(st.Mode), Rules: st.Rules, LastError: st.LastError,
	}
	if !st.Refused.IsZero() {
		refused := st.Refused.UTC()
		r.Refused = &refused
	}
	return r
}

func (a *admin) rules(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, rulesOf(a.limits.Status()))
}

func (a *admin) status(w http.ResponseWriter, _ *http.Request) {
	st := a.limits.Status()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	type overridesJSON struct {
		Set   int        `json:"set"`
		Read  *time.Time `json:"read,omitempty"`
		Error string     `json:"error"` // what is wrong with them, or why a later read failed; "": nothing
	}
	overrides := overridesJSON{Set: len(st.Overrides), Error: st.OverridesError}
	if !st.OverridesRead.IsZero() {
		read := st.OverridesRead.UTC()
		overrides.Read = &read
	}
	p := a.limits.Process()
	breaker, instances := "", int64(0)
	if p.Breaker != nil {
		breaker, instances = p.Breaker().String(), telemetry.Instances(p.Share())
	}
	answer(w, http.StatusOK, struct {
		readiness
		Breaker    string        `json:"breaker,omitempty"`   // closed, open or half-open; "" in process
		Instances  int64         `json:"instances,omitempty"` // that share each limit while Redis is away
		Started    time.Time     `json:"started"`
		Rules      rulesJSON     `json:"rules"`
		Overrides  overridesJSON `json:"overrides"`
		Goroutines int           `json:"goroutines"`
		HeapBytes  uint64        `json:"heap_bytes"`
		GoVersion  string        `json:"go"`
	}{a.readiness(), breaker, instances, a.started.UTC(), rulesOf(st), overrides, runtime.NumGoroutine(), memory.HeapAlloc, runtime.Version()})
}

func (a *admin) top(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		Minutes int      `json:"minutes"`
		Denied  []Denied `json:"denied"`
	}{topSlots, a.eyes.Top.List()})
}

// guarded lets those pass to next who send the token.
func (a *admin) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case a.token == "":
			writeProblem(w, http.StatusForbidden, "off: this process was started without a token")
		case !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare([]byte(strings.TrimSpace(sent)), []byte(a.token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, http.StatusUnauthorized, "want Authorization: Bearer and the token")
		default:
			next(w, r)
		}
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	writeJSON(w, v)
}
