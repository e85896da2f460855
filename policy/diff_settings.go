package policy

import (
	"fmt"
	"slices"
	"strings"
)

// settingChanges tells what differs outside the rules.
func settingChanges(was, is Config) []Change {
	var d settingDiff
	d.restart = true
	d.differ("store.redis", storeText(was.Store.Redis), storeText(is.Store.Redis), EffectAfresh, "another Redis may know nothing of what was used")
	if was.Store.Redis != is.Store.Redis && storeText(was.Store.Redis) == storeText(is.Store.Redis) {
		d.add("store.redis", EffectAfresh, "another URL: another Redis may know nothing of what was used")
	}
	d.differ("store.prefix", was.Store.Prefix, is.Store.Prefix, EffectAfresh, "other keys: every limit starts afresh")
	d.differ("store.timeout", was.Store.Timeout, is.Store.Timeout, EffectNone, "")
	d.differ("failover.trip_after", was.Failover.TripAfter, is.Failover.TripAfter, EffectNone, "")
	d.differ("failover.open_for", was.Failover.OpenFor, is.Failover.OpenFor, EffectNone, "")
	d.differ("failover.instances", instances(was.Failover.Instances), instances(is.Failover.Instances), EffectNone, "")
	d.differ("failover.group", was.Failover.Group, is.Failover.Group, EffectNone, "the fleet counts itself anew")
	d.restart = false
	if !slices.Equal(was.TrustedProxies, is.TrustedProxies) {
		d.add("trusted_proxies", EffectAfresh, "clients whose address is read from elsewhere now are other subjects")
	}
	d.differ("ipv6_prefix", was.IPv6Prefix, is.IPv6Prefix, EffectAfresh, "IPv6 clients are other subjects")
	d.differ("headers", was.Headers, is.Headers, EffectNone, "")
	d.mode(was.Mode, is.Mode)
	return d.found
}

// settingDiff collects changes.
type settingDiff struct {
	rule    string
	restart bool
	found   []Change
}

func (d *settingDiff) add(field string, e Effect, why string) {
	d.found = append(d.found, Change{Rule: d.rule, Field: field, Effect: e, Why: []string{why}, Restart: d.restart})
}

// differ adds a change where two values differ, with what follows from it.
func (d *settingDiff) differ(field string, was, is any, e Effect, follows string) {
	if was == is {
		return
	}
	why := fmt.Sprintf("%v, was %v", shown(is), shown(was))
	if follows != "" {
		why += ": " + follows
	}
	d.add(field, e, why)
}

// shown is a value as a reader sees that there is none.
func shown(v any) any {
	if text := fmt.Sprint(v); text == "" {
		return "unset"
	}
	return v
}

func (d *settingDiff) mode(was, is Mode) {
	refuses := func(m Mode) bool { return m == ModeEnforce || m == ModeLocal }
	effect, follows := EffectKeeps, "usage is kept"
	switch {
	case refuses(is) && !refuses(was):
		effect, follows = EffectEnforced, "all limits refuse from now on"
	case refuses(was) && is == ModeOff:
		effect, follows = EffectGone, "nothing is counted, and nobody refused"
	case refuses(was) && is == ModeShadow:
		effect, follows = EffectGone, "all is counted, and nobody refused"
	}
	d.differ("mode", was, is, effect, follows)
}

// storeText is where Redis is, without a URL, which may hold a password.
func storeText(where string) string {
	scheme, _, _ := strings.Cut(where, ":")
	switch {
	case where == "":
		return "in process"
	case scheme == "env" || scheme == "file":
		return where
	}
	return "a URL"
}

func instances(n int) any {
	if n == 0 {
		return "auto"
	}
	return n
}

// ruleChanges tells what differs in n's rule apart from its limits, once a rule. A renamed rule is a new one here. hid and
// hides are the hiders before and after.
func ruleChanges(before []place, n *place, hid, hides map[string][]string) []Change {
	if n.number > 0 {
		return nil
	}
	i := slices.IndexFunc(before, func(o place) bool { return o.rule.Name == n.rule.Name })
	if i < 0 {
		return nil
	}
	was, is := before[i].config, n.config
	d := settingDiff{rule: is.Name}
	d.differ("match", was.Match, is.Match, EffectKeeps, "other requests count; usage is kept")
	for _, specific := range hides[is.Name] {
		if !slices.Contains(hid[is.Name], specific) {
			d.add("match", EffectKeeps, "rule "+specific+" is more specific: its requests count here no more")
		}
	}
	for _, specific := range hid[is.Name] {
		if !slices.Contains(hides[is.Name], specific) {
			d.add("match", EffectKeeps, "rule "+specific+" hides it no more: those requests count here")
		}
	}
	d.differ("on_outage", was.OnOutage, is.OnOutage, EffectNone, "")
	d.differ("cost", was.Cost, is.Cost, EffectKeeps, "from the next request")
	d.differ("settle", was.Settle, is.Settle, EffectKeeps, "from the next request")
	d.lists("exempt", was.Exempt, is.Exempt)
	d.lists("deny", was.Deny, is.Deny)
	if was.Denial != is.Denial {
		d.add("denial", EffectNone, "another answer to those who are refused")
	}
	return d.found
}

// lists adds how many entries differ: an entry may hold a secret, and is not quoted.
func (d *settingDiff) lists(field string, was, is []string) {
	count := func(of, notIn []string) (n int) {
		for _, entry := range of {
			if !slices.Contains(notIn, entry) {
				n++
			}
		}
		return n
	}
	if added, removed := count(is, was), count(was, is); added+removed > 0 {
		d.add(field, EffectKeeps, fmt.Sprintf("%d added, %d removed, of %d before", added, removed, len(was)))
	}
}
