// Package policy says which requests are limited, by what, and who is counted.
//
// A [Config] is data: from a rule file (package rulefile) or from code. [New] checks all of it at once and compiles
// it into [Rules]: immutable, and read by every request without a lock. [Rules.Match] gives the rules of a request,
// [Rule.Standing] whether one exempts or denies it, [Rule.Cost] what it costs, and [Rule.Asks] what to ask a store.
// Package httplimit does all of that as middleware, and package service runs it.
//
// [IP], [Header] and the other subjects also stand alone, for a single limiter without rules.
package policy

import (
	"errors"
	"net/http"
)

// Rules are a Config, compiled. They are immutable and safe for concurrent use.
type Rules struct {
	config Config
	all    []*Rule
	always []*Rule
	tree   tree
	peers  peers // trusted_proxies
}

// New checks c and compiles it. The error joins every fault of c, each a [*FieldError] that names field, value and
// bound. New keeps nothing of c's slices.
//
// Subjects of overrides, and values in exempt and deny, that are env:NAME or file:PATH are read here: one that can't be
// read is a fault. No error holds such a value.
func New(c Config) (*Rules, error) {
	rules, faults := compile(c.clone(), true)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return rules, nil
}

// Check returns the faults that [New] would find, but for those of variables and files that c names, which are not
// read: for a place that has no secrets.
func (c Config) Check() error {
	_, faults := compile(c.clone(), false)
	return errors.Join(faults...)
}

// FieldError is one fault of a Config.
type FieldError struct {
	Path string // the field in the words of a rule file, such as rules[0].limits[1].burst
	Msg  string // its value, and what was wanted
}

// Error returns policy: path: message.
func (e *FieldError) Error() string { return "policy: " + e.Path + ": " + e.Msg }

// Config returns a copy of what the rules were made of, with the defaults filled in.
func (r *Rules) Config() Config { return r.config.clone() }

// Trusts tells whether req came straight from one of the trusted proxies, whose X-Forwarded-For is believed.
func (r *Rules) Trusts(req *http.Request) bool { return r.peers.sent(req) }

// Mode says what becomes of the rules' decisions.
func (r *Rules) Mode() Mode { return r.config.Mode }

// All returns every rule in the order of the Config. The slice is shared and must not be changed.
func (r *Rules) All() []*Rule { return r.all }

// Match returns the rules that hold for req: the one with the most specific pattern, then every rule with "always", in
// order. It is nil where there are none, and in ModeOff. The slice is shared and must not be changed.
//
// Patterns are those of http.ServeMux, on the cleaned and decoded path, so that /a//b, /a/./b and /a/%62 are /a/b;
// case and a trailing slash matter; a GET pattern matches HEAD. Unlike there, nothing is redirected, and hosts are
// compared without regard to case. Preflights match too: see [Preflight].
func (r *Rules) Match(req *http.Request) []*Rule {
	if r.config.Mode == ModeOff {
		return nil
	}
	if rules := r.tree.match(req); rules != nil {
		return rules
	}
	return r.always
}
