package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
)

// explainedJSON is what /explain answers. Times are seconds; what never passes has no retry_after_s.
type explainedJSON struct {
	Passes   bool                `json:"passes"`
	Known    bool                `json:"known"` // false: the store can't tell
	Note     string              `json:"note,omitempty"`
	Degraded bool                `json:"degraded"`
	Rules    []explainedRuleJSON `json:"rules"`
	Hidden   []string            `json:"hidden"` // names of broader rules that match, too
}

type explainedRuleJSON struct {
	Rule     string               `json:"rule"`
	Match    string               `json:"match"`
	Standing string               `json:"standing"` // counted, exempt or denied
	Cost     int64                `json:"cost"`
	Limits   []explainedLimitJSON `json:"limits"`
}

type explainedLimitJSON struct {
	Limit      string   `json:"limit"`
	Algorithm  string   `json:"algorithm"`
	Rate       string   `json:"rate"`
	Overridden bool     `json:"overridden"`
	Shadow     bool     `json:"shadow"`
	SubjectBy  string   `json:"subject_by"`
	Subject    string   `json:"subject"` // as in keys
	Top        string   `json:"top"`     // the subject as /top shows it
	Error      string   `json:"error,omitempty"`
	Source     string   `json:"source"` // shared, cached, local or assumed
	Allowed    bool     `json:"allowed"`
	Remaining  int64    `json:"remaining"`
	Most       int64    `json:"most"`
	RetryAfter *float64 `json:"retry_after_s,omitempty"`
	ResetAfter *float64 `json:"reset_after_s,omitempty"`
}

// explain tells what this process would answer to a request, with its breaker and its own buckets, and charges nothing.
func (a *admin) explain(w http.ResponseWriter, r *http.Request) {
	req, cost, err := explained(r)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateTime)
	defer cancel()
	rules := a.limits.Rules()
	e := service.Explain(ctx, rules, nil, req, cost) // what each limit answers to a stranger is replaced below
	j := explainedJSON{
		Passes: true, Known: true, Note: e.Note, Rules: []explainedRuleJSON{}, Hidden: []string{},
		Degraded: a.readiness().Degraded,
	}
	enforced := rules.Mode() != policy.ModeShadow
	for _, rule := range e.Rules {
		j.Passes = j.Passes && (rule.Standing != policy.Denied || !enforced)
		rj := explainedRuleJSON{
			Rule: rule.Rule.Name, Match: rule.Rule.Match, Standing: rule.Standing.String(), Cost: rule.Cost, Limits: []explainedLimitJSON{},
		}
		for _, l := range rule.Limits {
			lj := a.peek(ctx, rule.Rule.Name, l)
			if enforced && !l.Limit.Shadow {
				j.Known = j.Known && lj.Error == ""
				j.Passes = j.Passes && lj.Allowed
			}
			rj.Limits = append(rj.Limits, lj)
		}
		j.Rules = append(j.Rules, rj)
	}
	if rules.Mode() == policy.ModeLocal && len(e.Rules) > 0 { // Explain's note is of Redis, which is not asked here
		j.Note = "mode is local: each process decides on its own buckets, and these are this one's"
	}
	for _, rule := range e.Hidden {
		j.Hidden = append(j.Hidden, rule.Name)
	}
	answer(w, http.StatusOK, j)
}

func (a *admin) peek(ctx context.Context, rule string, l service.LimitAnswer) explainedLimitJSON {
	subject := l.Ask.Key.Subject
	j := explainedLimitJSON{
		Limit: l.Limit.Name, Algorithm: l.Limit.Algorithm, Rate: l.Ask.Strategy.Limit().String(), Overridden: l.Overridden,
		Shadow: l.Limit.Shadow, SubjectBy: l.Limit.SubjectName, Subject: subject, Top: HashSubject(subject),
	}
	limiter, ok := a.limits.Limiter(rule, l.Limit.Name)
	if !ok {
		j.Error = "the rules have just changed: ask again"
		return j
	}
	d, err := limiter.Peek(ctx, subject, l.Ask.N)
	if err != nil {
		j.Error = err.Error()
		return j
	}
	j.Source, j.Allowed, j.Remaining, j.Most = d.Source.String(), d.Allowed, d.Remaining, d.Limit
	j.RetryAfter, j.ResetAfter = seconds(d.RetryAfter), seconds(d.ResetAfter)
	return j
}

// seconds is nil for 0 and for never.
func seconds(d time.Duration) *float64 {
	if d <= 0 || d == sluice.Never {
		return nil
	}
	s := d.Seconds()
	return &s
}

// explained reads the request to explain. Errors hold no header's value, which may be a secret.
func explained(r *http.Request) (req *http.Request, cost *int64, err error) {
	q, err := parameters(r, "header", "path", "method", "ip", "header", "cost")
	if err != nil {
		return nil, nil, err
	}
	or := func(name, otherwise string) string {
		if v := q.Get(name); v != "" {
			return v
		}
		return otherwise
	}
	target, err := url.ParseRequestURI(or("path", "/"))
	if err != nil || target.Path != "" && target.Path[0] != '/' {
		return nil, nil, errors.New("path: want a path that begins with a slash, or a URL")
	}
	if target.Path == "" {
		target.Path = "/"
	}
	peer, err := netip.ParseAddr(or("ip", "127.0.0.1"))
	if err != nil {
		return nil, nil, errors.New("ip: want an address such as 192.0.2.1")
	}
	method := or("method", http.MethodGet)
	if !isToken(method) {
		return nil, nil, errors.New("method: want a method such as GET")
	}
	if text := q.Get("cost"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, nil, errors.New("cost: want a whole number of at least 0")
		}
		cost = &n
	}
	req = &http.Request{
		Method: method, URL: target, Host: target.Host, Header: http.Header{}, RemoteAddr: netip.AddrPortFrom(peer, 0).String(),
	}
	for _, line := range q["header"] {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || !isToken(name) {
			return nil, nil, fmt.Errorf("header: want NAME:VALUE")
		}
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = strings.TrimSpace(value)
			continue
		}
		req.Header.Add(name, strings.TrimSpace(value))
	}
	return req, cost, nil
}
