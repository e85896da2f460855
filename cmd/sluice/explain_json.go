package main

import "github.com/sluice-go/sluice/service"

// explainedJSON is what explain --json prints. Times are seconds; a request that never passes has no retry_after.
type explainedJSON struct {
	Request    string     `json:"request"`
	Peer       string     `json:"peer"`
	Passes     bool       `json:"passes"`
	Known      bool       `json:"known"`               // false: Redis can't tell
	OnOutage   string     `json:"on_outage,omitempty"` // what decides while it is away, for all rules together
	Status     int        `json:"status,omitempty"`
	RetryAfter *float64   `json:"retry_after_s,omitempty"`
	Delay      *float64   `json:"delay_s,omitempty"`
	Note       string     `json:"note,omitempty"`
	InProcess  bool       `json:"in_process"`
	Rules      []ruleJSON `json:"rules"`
	Hidden     []string   `json:"hidden"` // names of broader rules that match, too
}

type ruleJSON struct {
	Rule     string      `json:"rule"`
	Match    string      `json:"match"`
	Standing string      `json:"standing"` // counted, exempt or denied
	OnOutage string      `json:"on_outage"`
	Cost     int64       `json:"cost"`
	Limits   []limitJSON `json:"limits"`
}

type limitJSON struct {
	Limit      string   `json:"limit"`
	Algorithm  string   `json:"algorithm"`
	Rate       string   `json:"rate"` // as in a rule file, with the burst
	Overridden bool     `json:"overridden"`
	Shadow     bool     `json:"shadow"`
	SubjectBy  string   `json:"subject_by"`
	Subject    string   `json:"subject"` // as in keys
	Key        string   `json:"key,omitempty"`
	Error      string   `json:"error,omitempty"`
	Allowed    bool     `json:"allowed"`
	Remaining  int64    `json:"remaining"`
	Most       int64    `json:"most"`
	RetryAfter *float64 `json:"retry_after_s,omitempty"`
	ResetAfter *float64 `json:"reset_after_s,omitempty"`
	Delay      *float64 `json:"delay_s,omitempty"`
}

func (e explained) json() explainedJSON {
	j := explainedJSON{
		Request: e.request, Peer: e.peer, Passes: e.Passes, Known: e.Err == nil, Status: e.Status,
		OnOutage: string(e.OnOutage), RetryAfter: seconds(e.RetryAfter), Delay: seconds(e.Delay), Note: e.Note, InProcess: e.inProcess,
		Rules: []ruleJSON{}, Hidden: []string{},
	}
	for _, a := range e.Rules {
		r := ruleJSON{
			Rule: a.Rule.Name, Match: a.Rule.Match, Standing: a.Standing.String(), OnOutage: string(a.Rule.OnOutage),
			Cost: a.Cost, Limits: []limitJSON{},
		}
		for _, l := range a.Limits {
			r.Limits = append(r.Limits, jsonOf(l))
		}
		j.Rules = append(j.Rules, r)
	}
	for _, rule := range e.Hidden {
		j.Hidden = append(j.Hidden, rule.Name)
	}
	return j
}

func jsonOf(l service.LimitAnswer) limitJSON {
	j := limitJSON{
		Limit: l.Limit.Name, Algorithm: l.Limit.Algorithm, Rate: l.Ask.Strategy.Limit().String(),
		Overridden: l.Overridden, Shadow: l.Limit.Shadow, SubjectBy: l.Limit.SubjectName,
		Subject: l.Ask.Key.Subject, Key: l.Key,
	}
	if l.Err != nil {
		j.Error = l.Err.Error()
		return j
	}
	d := l.Decision
	j.Allowed, j.Remaining, j.Most = d.Allowed, d.Remaining, d.Limit
	j.RetryAfter, j.ResetAfter, j.Delay = seconds(d.RetryAfter), seconds(d.ResetAfter), seconds(d.Delay)
	return j
}
