package grpclimit

import (
	"net/http"

	"github.com/sluice-go/sluice/policy"
)

// holding returns those of matched that count the call, and the first that denies it.
func holding(matched []*policy.Rule, r *http.Request) (rules []*policy.Rule, denied *policy.Rule) {
	rules = make([]*policy.Rule, 0, len(matched))
	for _, rule := range matched {
		switch rule.Standing(r) {
		case policy.Counted:
			rules = append(rules, rule)
		case policy.Denied:
			if denied == nil {
				denied = rule
			}
		}
	}
	return rules, denied
}

// refusing returns the rule and the limit that ask number refused belongs to: asks are those of the rules in their
// order, without the shadows.
func refusing(rules []*policy.Rule, refused int) (*policy.Rule, *policy.Limit) {
	for _, rule := range rules {
		for i := range rule.Limits {
			if rule.Limits[i].Shadow {
				continue
			}
			if refused == 0 {
				return rule, &rule.Limits[i]
			}
			refused--
		}
	}
	return rules[0], &rules[0].Limits[0]
}
