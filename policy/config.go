package policy

import (
	"net/netip"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algorithm"
)

// OnOutage says what a rule decides with while the shared store is away.
type OnOutage string

// The choices of RuleConfig.OnOutage.
const (
	Local OnOutage = "local" // this process's own buckets: the default
	Allow OnOutage = "allow" // fail-open: every request passes
	Deny  OnOutage = "deny"  // fail-closed: no request passes
)

// Mode says what becomes of the decisions of all rules: the kill switch.
type Mode string

// The choices of Config.Mode.
const (
	ModeEnforce Mode = "enforce" // denied requests are refused: the default
	ModeShadow  Mode = "shadow"  // decided and reported, never refused; not supported yet
	ModeLocal   Mode = "local"   // decided in process, as on_outage: local does, while the shared store is left alone
	ModeOff     Mode = "off"     // no rule matches, nothing is counted
)

// Headers is the style of the headers that tell a client its limit.
type Headers string

// The choices of Config.Headers.
const (
	HeadersDraft Headers = "draft"       // RateLimit-Policy and RateLimit of the IETF draft: the default
	HeadersX     Headers = "x-ratelimit" // X-RateLimit-Limit, -Remaining and -Reset
	HeadersOff   Headers = "off"         // neither; Retry-After stays
)

// Config is what a rule file says, and what code may say instead. The zero value of a field is its default.
// [New] checks it.
type Config struct {
	Store          StoreConfig
	Failover       FailoverConfig
	TrustedProxies []netip.Prefix // peers whose X-Forwarded-For is believed; none: nobody's
	IPv6Prefix     int            // bits of an IPv6 address that make one client, 1 to 128; 0: 64
	Headers        Headers        // "": HeadersDraft
	Mode           Mode           // "": ModeEnforce
	Rules          []RuleConfig
}

// StoreConfig says where states are kept.
type StoreConfig struct {
	Redis   string        // "env:NAME", "file:PATH" or a URL; "": in process
	Timeout time.Duration // of a whole call, 1ms to 1m; 0: 50ms
	Prefix  string        // begins each Redis key; "": "sluice"; no brace
}

// FailoverConfig says when the shared store counts as away, and who else shares the limits then.
type FailoverConfig struct {
	TripAfter int           // consecutive failures that open the breaker; 0: 5
	OpenFor   time.Duration // from opening to the first probe; 0: 1s
	Instances int           // processes that share each limit in an outage; 0: counted by heartbeat
	Group     string        // of the heartbeat; "": one for all that share the prefix
}

// RuleConfig limits the requests that Match selects.
type RuleConfig struct {
	Name     string   // begins the keys: letters, digits and . _ : @ -
	Match    string   // a net/http pattern, or "always": holds in addition to the pattern that wins
	OnOutage OnOutage // "": Local
	Denial   Denial
	Limits   []LimitConfig // all of them hold; at least one
}

// Denial is the answer to a request that is refused. The zero Denial is 429 with a problem+json body.
type Denial struct {
	Status int    // 400 to 599; 0: 429
	Type   string // media type of Body; "": "text/plain; charset=utf-8" where there is a Body
	Body   string // "": problem+json
}

// LimitConfig is one limit of a rule.
type LimitConfig struct {
	Name      string          // letters, digits and . _ : @ -; "": algorithm-subject, such as "token_bucket-ip"
	Algorithm string          // one of Algorithms
	Limit     algorithm.Limit // Burst has no default here: token_bucket and leaky_bucket require it
	Subject   string          // ip, global, header:NAME, cookie:NAME, query:NAME or path:WILDCARD
}

// clone returns a copy that shares no slice with c.
func (c Config) clone() Config {
	c.TrustedProxies = slices.Clone(c.TrustedProxies)
	c.Rules = slices.Clone(c.Rules)
	for i := range c.Rules {
		c.Rules[i].Limits = slices.Clone(c.Rules[i].Limits)
	}
	return c
}
