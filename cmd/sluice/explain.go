package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/redis"
)

type explain struct {
	Rules  string   `arg:"" help:"Rule file."`
	Method string   `short:"X" default:"GET" help:"Method of the request. Default: ${default}."`
	Path   string   `default:"/" placeholder:"PATH|URL" help:"Path of the request, with its query; or its URL, with its host. Default: ${default}."`
	Header []string `short:"H" sep:"none" placeholder:"NAME:VALUE" help:"A header of the request; may be given again."`
	IP     string   `name:"ip" default:"127.0.0.1" placeholder:"ADDR" help:"Address of the peer; X-Forwarded-For is a --header. Default: ${default}."`
	Cost   *int64   `placeholder:"N" help:"Units that the request costs. Default: what the rules say."`
	JSON   bool     `help:"Answer with one JSON object."`
}

func (explain) Help() string {
	return `Says what the rules make of a request: which hold, which broader ones they hide, who is counted under which key, and
what each limit would answer now. It charges nothing and sends no request. Overrides that are set in Redis count. Secrets
are shown as the hashes that stand in the keys.

It exits with 0 if the request would pass, and with 1 if it would be refused or the store can't tell.

Example:

    sluice explain examples/rules.yaml --path /token
    sluice explain rules.yaml -X POST --path /login --ip 192.0.2.1 -H "X-API-Key: $API_KEY" --json`
}

// Run explains one request.
func (c explain) Run(ctx context.Context, s streams) error {
	req, err := c.request(ctx)
	if err != nil {
		return misuse{fmt.Errorf("sluice: explain: %w", err)}
	}
	rules, err := compileRules("explain", c.Rules)
	if err != nil {
		return err
	}
	store, err := service.Direct(rules.Config())
	switch {
	case errors.Is(err, service.ErrNoRedis):
	case err != nil:
		return fmt.Errorf("sluice: explain: %w", err)
	default:
		defer store.Close()
		rules = withOverrides(ctx, s, "explain", rules, store)
	}
	answer := explained{
		Explanation: service.Explain(ctx, rules, store, req, c.Cost),
		request:     req.Method + " " + req.URL.Path, peer: c.IP, inProcess: store == nil,
	}
	if c.JSON {
		if err := printJSON(s.out, answer.json()); err != nil {
			return err
		}
	} else {
		answer.write(s.out)
	}
	if !answer.Passes {
		return errSaid
	}
	return nil
}

// withOverrides adds what is set in Redis. Where that can't be read, which is told, the limits' own answers tell more.
func withOverrides(ctx context.Context, s streams, command string, rules *policy.Rules, store *redis.Store) *policy.Rules {
	set, err := store.Overrides(ctx)
	if err != nil {
		fmt.Fprintf(s.err, "sluice: %s: overrides: %s\n", command, printable(err.Error()))
	}
	if len(set) == 0 {
		return rules
	}
	rules, err = service.Overridden(rules, set, time.Now())
	for _, cause := range causes(err) {
		fmt.Fprintf(s.err, "sluice: %s: %s\n", command, printable(cause.Error()))
	}
	return rules
}

// request makes the request of the flags. Errors hold no header's value, which may be a secret.
func (c explain) request(ctx context.Context) (*http.Request, error) {
	target, err := url.ParseRequestURI(c.Path)
	if err != nil || target.Path == "" && target.Host == "" || target.Path != "" && target.Path[0] != '/' {
		return nil, errors.New("--path: want a path that begins with a slash, or a URL")
	}
	if target.Path == "" {
		target.Path = "/"
	}
	peer, err := netip.ParseAddr(c.IP)
	if err != nil {
		return nil, fmt.Errorf("--ip %q: want an address such as 192.0.2.1", c.IP)
	}
	if c.Cost != nil && *c.Cost < 0 {
		return nil, fmt.Errorf("--cost %d: want at least 0", *c.Cost)
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, "/", nil)
	if err != nil {
		return nil, fmt.Errorf("--method %q: want a method such as GET", c.Method)
	}
	req.URL, req.Host, req.RemoteAddr = target, target.Host, netip.AddrPortFrom(peer, 0).String()
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, errors.New("--header: want NAME:VALUE")
		}
		value = strings.TrimSpace(value)
		if http.CanonicalHeaderKey(name) == "Host" {
			req.Host = value
			continue
		}
		req.Header.Add(name, value)
	}
	return req, nil
}

// explained is an Explanation to print.
type explained struct {
	service.Explanation
	request, peer string
	inProcess     bool
}

func (e explained) write(w io.Writer) {
	fmt.Fprintf(w, "%s from %s: %s\n", printable(e.request), printable(e.peer), e.verdict())
	if e.Note != "" {
		fmt.Fprintf(w, "note: %s\n", e.Note)
	}
	for _, a := range e.Rules {
		fmt.Fprintf(w, "\nrule %s: %s\n", a.Rule.Name, a.Rule.Match)
		switch a.Standing {
		case policy.Exempt:
			fmt.Fprintln(w, "  exempt: this rule does not limit the request")
		case policy.Denied:
			fmt.Fprintf(w, "  denied by the rule's deny: refused with %d\n", a.Rule.Forbidden.Status)
		}
		for _, l := range a.Limits {
			writeLimit(w, a.Cost, l)
		}
	}
	for i, rule := range e.Hidden {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "hidden: rule %s: %s matches, too, and does not hold, since it is broader\n", rule.Name, rule.Match)
	}
	if e.inProcess && len(e.Rules) > 0 {
		fmt.Fprintln(w, "\nThe states are inside the processes that serve the file: each limit answers as to a subject that it never saw.")
	}
}

func writeLimit(w io.Writer, cost int64, l service.LimitAnswer) {
	about := ""
	if l.Overridden {
		about += ", by an override"
	}
	if l.Limit.Shadow {
		about += ", in the shadow: never refuses"
	}
	fmt.Fprintf(w, "  %s %v per %s%s\n", l.Limit.Algorithm, l.Ask.Strategy.Limit(), l.Limit.SubjectName, about)
	fmt.Fprintf(w, "    subject  %s\n", printable(l.Ask.Key.Subject))
	if l.Key != "" {
		fmt.Fprintf(w, "    key      %s\n", printable(l.Key))
	}
	if l.Err != nil {
		fmt.Fprintf(w, "    now      unknown: %s\n", printable(l.Err.Error()))
		return
	}
	d := l.Decision
	says := "passes"
	switch {
	case !d.Allowed && d.RetryAfter == sluice.Never:
		says = "refused for ever: the cost is above the burst"
	case !d.Allowed:
		says = "refused for " + wait(d.RetryAfter)
	case d.Delay > 0:
		says = "passes, held for " + wait(d.Delay)
	}
	fmt.Fprintf(w, "    now      %s; cost %d, %d of %d remaining", says, cost, d.Remaining, d.Limit)
	if d.ResetAfter > 0 {
		fmt.Fprintf(w, ", as new in %s", wait(d.ResetAfter))
	}
	fmt.Fprintln(w)
}

// verdict is the whole in a few words.
func (e explained) verdict() string {
	switch {
	case e.Err != nil:
		return fmt.Sprintf("unknown, Redis can't tell; while it is away, on_outage is %s", e.OnOutage)
	case e.Passes && e.Delay > 0:
		return "would pass, held for " + wait(e.Delay)
	case e.Passes:
		return "would pass"
	case e.RetryAfter == sluice.Never:
		return fmt.Sprintf("would be refused with %d, for ever at this cost", e.Status)
	case e.RetryAfter > 0:
		return fmt.Sprintf("would be refused with %d, for %s", e.Status, wait(e.RetryAfter))
	}
	return fmt.Sprintf("would be refused with %d", e.Status)
}
