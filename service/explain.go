package service

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/store/local"
	"github.com/sluice-go/sluice/store/redis"
)

// Explanation is what rules make of one request at one time.
type Explanation struct {
	Rules  []RuleAnswer   // those that hold, in order
	Hidden []*policy.Rule // those that match, too, and do not hold, since the pattern of the first of Rules is more specific
	Note   string         // why the rules do not decide, or not as they stand here; "": they do

	Passes     bool            // the request would pass; false where Err is not nil
	Status     int             // of the answer where it would not
	RetryAfter time.Duration   // as a Verdict's
	Delay      time.Duration   // that the request would be held
	Err        error           // the first of the limits' own: the store could not tell
	OnOutage   policy.OnOutage // what decides instead, while the store is away
}

// RuleAnswer is what one rule makes of a request.
type RuleAnswer struct {
	Rule     *policy.Rule
	Standing policy.Standing
	Cost     int64
	Limits   []LimitAnswer // none where the request is exempt, and where any rule's deny lists it: then no limit is asked
}

// LimitAnswer is what one limit would answer now.
type LimitAnswer struct {
	Limit      *policy.Limit
	Ask        sluice.Ask // a Peek
	Overridden bool       // the subject has a limit of its own
	Key        string     // in Redis; "" in process
	Decision   sluice.Decision
	Err        error
}

// Explain tells which of the rules hold for a request, who it is to each limit, and what each would answer. Nothing is
// charged. A store that is nil stands for states in process, which nobody else can look at: each limit answers as to a
// subject that it never saw. cost is charged in place of what each rule says, unless it is nil.
func Explain(ctx context.Context, rules *policy.Rules, store *redis.Store, req *http.Request, cost *int64) Explanation {
	holds := rules.Match(req)
	denied := slices.ContainsFunc(holds, func(r *policy.Rule) bool { return r.Standing(req) == policy.Denied })
	e := Explanation{Passes: true, Note: note(rules, req, denied)}
	if rules.Mode() == policy.ModeOff || policy.Preflight(req) && !denied {
		return e
	}
	e.Hidden = hiddenFrom(rules, req)
	denied = denied && rules.Mode() != policy.ModeShadow
	p := &peeker{store: store, fresh: local.New(local.Options{})}
	for _, rule := range holds {
		a := RuleAnswer{Rule: rule, Standing: rule.Standing(req), Cost: rule.Cost(req)}
		if cost != nil {
			a.Cost = *cost
		}
		if a.Standing == policy.Counted && !denied {
			for i := range rule.Limits {
				a.Limits = append(a.Limits, p.peek(ctx, &rule.Limits[i], req, a.Cost))
			}
		}
		e.Rules = append(e.Rules, a)
	}
	var counted []*policy.Rule
	for _, a := range e.Rules {
		if a.Standing == policy.Counted {
			counted = append(counted, a.Rule)
		}
	}
	if len(e.Rules) > 0 {
		e.OnOutage = policy.Strictest(counted)
	}
	e.sum()
	if rules.Mode() == policy.ModeShadow && e.Err == nil {
		e.Passes, e.Status, e.RetryAfter, e.Delay = true, 0, 0, 0
	}
	return e
}

// note tells what else has a say.
func note(rules *policy.Rules, req *http.Request, denied bool) string {
	switch {
	case rules.Mode() == policy.ModeOff:
		return "mode is off: nothing is counted"
	case policy.Preflight(req) && !denied:
		return "a CORS preflight is not charged"
	case rules.Mode() == policy.ModeShadow:
		return "mode is shadow: nobody is refused, whatever the limits answer"
	case rules.Mode() == policy.ModeLocal:
		return "mode is local: each process decides on its own buckets, and not on the state in Redis that is shown"
	case len(rules.Match(req)) == 0:
		return "no rule matches: the request passes uncounted"
	}
	return ""
}

// hiddenFrom returns the rules that would hold for req if they stood alone.
func hiddenFrom(rules *policy.Rules, req *http.Request) []*policy.Rule {
	holds := rules.Match(req)
	config := rules.Config()
	config.Mode = policy.ModeEnforce
	var hidden []*policy.Rule
	for i, rule := range rules.All() {
		if slices.Contains(holds, rule) {
			continue
		}
		alone := config
		alone.Rules = config.Rules[i : i+1]
		if r, err := policy.New(alone); err == nil && len(r.Match(req)) > 0 {
			hidden = append(hidden, rule)
		}
	}
	return hidden
}

// sum makes one answer of all: a denial by list goes before the limits, of which all must allow but the shadows.
func (e *Explanation) sum() {
	for _, rule := range e.Rules {
		if rule.Standing == policy.Denied {
			e.Passes, e.Status, e.RetryAfter, e.Delay, e.Err = false, rule.Rule.Forbidden.Status, 0, 0, nil
			return
		}
		for _, l := range rule.Limits {
			switch {
			case l.Limit.Shadow:
				continue
			case l.Err != nil:
				if e.Passes = false; e.Err == nil {
					e.Err = l.Err
				}
				continue
			}
			e.RetryAfter, e.Delay = max(e.RetryAfter, l.Decision.RetryAfter), max(e.Delay, l.Decision.Delay)
			if !l.Decision.Allowed && e.Status == 0 {
				e.Passes, e.Status = false, rule.Rule.Denial.Status
			}
		}
	}
	if !e.Passes {
		e.Delay = 0
	}
}

// peeker asks a store without charging. After a store that can't be reached it asks no more.
type peeker struct {
	store *redis.Store // nil: fresh stands for it
	fresh *local.Store
	gone  error
}

func (p *peeker) peek(ctx context.Context, l *policy.Limit, req *http.Request, cost int64) LimitAnswer {
	a := LimitAnswer{Limit: l, Ask: l.Ask(req, cost)}
	a.Ask.Mode = sluice.Peek
	a.Overridden = !sameStrategy(a.Ask.Strategy, l.Strategy)
	switch {
	case p.store == nil:
		a.Decision, a.Err = p.fresh.Take(ctx, a.Ask)
	case p.gone != nil:
		a.Key, a.Err = p.store.KeyOf(a.Ask), p.gone
	default:
		var entry redis.Entry
		entry, a.Err = p.store.Inspect(ctx, a.Ask)
		a.Key, a.Decision = p.store.KeyOf(a.Ask), entry.Decision
		if errors.Is(a.Err, sluice.ErrUnavailable) {
			p.gone = a.Err
		}
	}
	return a
}

func sameStrategy(a, b sluice.Strategy) bool {
	scriptA, paramsA := a.Lua()
	scriptB, paramsB := b.Lua()
	return scriptA == scriptB && slices.Equal(paramsA, paramsB)
}
