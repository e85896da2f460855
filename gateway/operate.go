package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice"
	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/service"
	"github.com/sluice-go/sluice/store/redis"
)

// leastOverride is the shortest time of an override: what ends before processes have read it changes nothing.
const leastOverride = 5 * time.Second

// operateTime bounds what an operator's request may wait for.
const operateTime = 5 * time.Second

// naming are the parameters that name a limit and a subject.
func naming() []string { return []string{"rule", "limit", "subject"} }

// named is the limit and the subject that parameters name: rule, limit ("" where the rule has one that refuses), subject,
// as a request would give it.
func (a *admin) named(said url.Values) (rules *policy.Rules, limit *policy.Limit, rule, key string, err error) {
	rules = a.limits.Rules()
	name, limitName := said.Get("rule"), said.Get("limit")
	if name == "" {
		return nil, nil, "", "", errors.New("rule: missing")
	}
	for _, candidate := range rules.All() {
		if candidate.Name != name {
			continue
		}
		for i := range candidate.Limits {
			if l := &candidate.Limits[i]; l.Name == limitName || limitName == "" && l.KeyRule == name {
				key, err = l.SubjectKey(said.Get("subject"))
				return rules, l, name, key, err
			}
		}
		return nil, nil, "", "", fmt.Errorf("limit %q: rule %s has none of that name", limitName, name)
	}
	return nil, nil, "", "", fmt.Errorf("rule %q: there is none of that name", name)
}

// reset forgets what a subject has used, as this process keeps it: in Redis, or in itself.
func (a *admin) reset(w http.ResponseWriter, r *http.Request) {
	said, err := parameters(r, "", naming()...)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	_, limit, rule, key, err := a.named(said)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	limiter, ok := a.limits.Limiter(rule, limit.Name)
	if !ok {
		writeProblem(w, http.StatusConflict, "the rules have just changed: ask again")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), operateTime)
	defer cancel()
	if err := limiter.Reset(ctx, key); err != nil {
		writeProblem(w, http.StatusBadGateway, err.Error())
		return
	}
	answer(w, http.StatusOK, struct {
		Limit   string `json:"limit"`
		Subject string `json:"subject"`
		Reset   bool   `json:"reset"`
	}{limit.KeyRule, key, true})
}

// override sets another limit for a subject, in all processes.
func (a *admin) override(w http.ResponseWriter, r *http.Request) {
	said, err := parameters(r, "", slices.Concat(naming(), []string{"rate", "burst", "for"})...)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	rules, limit, _, key, err := a.named(said)
	o := redis.Override{Subject: key}
	if err == nil {
		o.Rule = limit.KeyRule
		err = readOverride(&o, limit.Algorithm, said)
	}
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	var until *time.Time
	if !o.Until.IsZero() {
		until = &o.Until
	}
	a.inRedis(w, r, rules, func(ctx context.Context, st *redis.Store) error { return st.SetOverride(ctx, o) }, struct {
		Limit   string     `json:"limit"`
		Subject string     `json:"subject"`
		Rate    string     `json:"rate"`  // with the burst
		Until   *time.Time `json:"until"` // null: until it is cleared
	}{o.Rule, o.Subject, o.Limit.String(), until})
}

// readOverride fills in the limit, rate with burst, and its end, which is for from now.
func readOverride(o *redis.Override, algorithm string, said url.Values) error {
	var err error
	if o.Limit, err = sluice.ParseLimit(said.Get("rate")); err != nil {
		return fmt.Errorf("rate: %w", err)
	}
	if text := said.Get("burst"); text != "" {
		if o.Limit.Burst, err = strconv.ParseInt(text, 10, 64); err != nil || o.Limit.Burst < 1 {
			return errors.New("burst: want a whole number of at least 1")
		}
	} else if policy.HasBurst(algorithm) {
		o.Limit.Burst = o.Limit.Count
	}
	if text := said.Get("for"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < leastOverride {
			return errors.New("for: want a duration of at least 5s, such as 30m")
		}
		o.Until = time.Now().Add(d).UTC().Truncate(time.Millisecond)
	}
	_, err = policy.NewStrategy(algorithm, o.Limit)
	return err
}

// clear ends the override of a subject.
func (a *admin) clear(w http.ResponseWriter, r *http.Request) {
	said, err := parameters(r, "", naming()...)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	rules, limit, _, key, err := a.named(said)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, err.Error())
		return
	}
	a.inRedis(w, r, rules, func(ctx context.Context, st *redis.Store) error {
		_, err := st.ClearOverride(ctx, limit.KeyRule, key)
		return err
	}, struct {
		Limit   string `json:"limit"`
		Subject string `json:"subject"`
		Cleared bool   `json:"cleared"`
	}{limit.KeyRule, key, true})
}

// inRedis runs f on the rules' Redis, and answers done if that goes well.
func (a *admin) inRedis(w http.ResponseWriter, r *http.Request, rules *policy.Rules, f func(context.Context, *redis.Store) error, done any) {
	st, err := service.Direct(rules.Config())
	if errors.Is(err, service.ErrNoRedis) {
		writeProblem(w, http.StatusConflict, "the rules name no Redis, where overrides are kept")
		return
	}
	if err == nil {
		defer st.Close()
		ctx, cancel := context.WithTimeout(r.Context(), operateTime)
		defer cancel()
		err = f(ctx, st)
	}
	if err != nil {
		writeProblem(w, http.StatusBadGateway, err.Error())
		return
	}
	answer(w, http.StatusOK, done)
}
