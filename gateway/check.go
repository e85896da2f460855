package gateway

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/sluice-go/sluice/service"
)

// CheckOptions are the choices of a [Check]. The zero CheckOptions are right for Traefik and Caddy.
type CheckOptions struct {
	// DenyStatus is that of every answer that is a refusal, whatever the rule says: nginx's auth_request knows 401 and
	// 403 alone, and makes an error of the rest. The status that it stands for is in the field Sluice-Status. 400 to
	// 599; 0: the rule's own.
	DenyStatus int

	Logger *slog.Logger // of requests that are no checks, a line a second at most; nil: slog.Default()
}

// statusField names the field that keeps the status which DenyStatus stands for.
const statusField = "Sluice-Status"

// Check returns a handler that a proxy asks whether a request may go on: 200 with the rate fields where it may, else the
// refusal as a client is to see it.
//
// The request is read from what the proxy says of it: X-Original-Method, X-Original-URI and X-Original-Host, or else the
// Host (nginx, where they are set by hand), or X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host (Traefik and
// Caddy, which set them by themselves). All other fields are the client's, and X-Forwarded-For names the client's
// address, as in [policy.IP]. What says both is refused with 403: one of the two is the client's own invention. So is
// whoever asks and is not in the rules' trusted_proxies. A check without them is 400.
//
// The path of X-Original-URI is read as nginx does when it picks a location, where an escaped slash is a slash, and that of
// X-Forwarded-Uri as net/http's ServeMux does. What is one path to some and another to others is refused with 403: one with
// . or .. that only decoding brings to light, such as %2e%2e; one from nginx whose escaped slashes put it under other rules
// than most services would; and a URI with a fragment.
//
// A rule with settle keeps what it charged: a check sees no response. The answer takes as long as the request is held,
// which on a [Server] has a bound.
func Check(limits *service.Service, o CheckOptions) (http.Handler, error) {
	if s := o.DenyStatus; s != 0 && (s < 400 || s > 599) {
		return nil, fmt.Errorf("gateway: DenyStatus: %d: want 400 to 599, or 0 for the rule's own", s)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &check{limits: limits, status: o.DenyStatus, complaints: seldom{logger: o.Logger}}, nil
}

type check struct {
	limits     *service.Service
	status     int // 0: the rule's own
	complaints seldom
}

func (c *check) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := w
	if c.status != 0 {
		asked = &refusal{ResponseWriter: w, status: c.status}
	}
	rules := c.limits.Rules()
	if !rules.Trusts(r) {
		c.complaints.log(r.Context(), "sluice: a check from a peer that is not in trusted_proxies is refused", "peer", r.RemoteAddr)
		writeProblem(asked, http.StatusForbidden, "the peer is not in trusted_proxies")
		return
	}
	original, status, problem := originalOf(r)
	if problem == "" && readApart(rules, original) {
		status, problem = http.StatusForbidden, "the path of the request has encoded slashes by which it is under other rules to some"
	}
	if problem != "" {
		c.complaints.log(r.Context(), "sluice: a check can't be read", "peer", r.RemoteAddr, "problem", problem)
		if status != http.StatusForbidden { // the proxy's fault, which no client is to be told as a refusal
			asked = w
		}
		writeProblem(asked, status, problem)
		return
	}
	if c.limits.Check(asked, original) {
		w.WriteHeader(http.StatusOK)
	}
}

// refusal is a ResponseWriter whose every answer has one status.
type refusal struct {
	http.ResponseWriter
	status int
}

func (w *refusal) WriteHeader(status int) {
	if status >= 200 {
		w.Header().Set(statusField, fmt.Sprint(status))
		status = w.status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *refusal) Unwrap() http.ResponseWriter { return w.ResponseWriter }
