package policy

// Strictest returns the on_outage under which rules that hold together are decided: the one that lets least pass, so
// that what one of them asks for no other loosens. Rules of shadows alone have no say where others refuse.
func Strictest(rules []*Rule) OnOutage {
	outage, enforced := Allow, false
	for _, rule := range rules {
		switch refuses := rule.enforced > 0; {
		case enforced && !refuses:
			continue
		case refuses && !enforced:
			outage, enforced = Allow, true
		}
		switch {
		case rule.OnOutage == Deny || outage == Deny:
			outage = Deny
		case rule.OnOutage != Allow:
			outage = Local
		}
	}
	return outage
}
