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
	ModeShadow  Mode = "shadow"  // decided, charged and reported; never refused, held or told to the client
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
	Cost     CostConfig
	Settle   string        // "response:NAME": the response's header NAME says what the request cost after all; "": nothing does
	Exempt   []string      // requests that this rule does not limit; see Deny for the form
	Deny     []string      // requests that are refused, whatever is left: addresses, networks, or KIND:NAME=VALUE
	Limits   []LimitConfig // all of them hold; at least one
}

// Denial is the answer to a request that is refused. The zero Denial is a problem+json body with 429, or with 403 for a
// request that Deny lists.
type Denial struct {
	Status int    // 400 to 599; 0: 429, or 403 for those that Deny lists
	Type   string // media type of Body; "": "text/plain; charset=utf-8" where there is a Body
	Body   string // "": problem+json
}

// CostConfig says how many units a request is charged.
type CostConfig struct {
	Header  string // of requests from a trusted proxy: its number is the cost; "": none, each request costs Default
	Default int64  // what a request without a usable number costs; 0: 1
	Min     int64  // least number of Header that counts, at most Default; 0: Default
	Max     int64  // most that a request is charged, by Header or Settle; required with either
}

// LimitConfig is one limit of a rule.
type LimitConfig struct {
	Name      string           // letters, digits and . _ : @ -; "": algorithm-subject, such as "token_bucket-ip"
	Algorithm string           // one of Algorithms
	Limit     algorithm.Limit  // Burst has no default here: token_bucket requires it, and leaky_bucket without MaxDelay
	Subject   string           // ip, global, header:NAME, cookie:NAME, query:NAME or path:WILDCARD
	MaxDelay  time.Duration    // leaky_bucket: longest that a request is held; lowers Burst, or stands for it; 0: no bound but Burst
	Shadow    bool             // decided on a key of its own, apart from the others, and reported; never refuses
	Overrides []OverrideConfig // other limits for single subjects, on the same keys, so that usage is kept
}

// OverrideConfig is another limit for one subject.
type OverrideConfig struct {
	Subject    string          // as a request gives it, or env:NAME or file:PATH; becomes a key as a request's does
	SubjectKey string          // as Key.Subject has it, in place of Subject: code only; goes before one by Subject
	Limit      algorithm.Limit // Burst as in LimitConfig
	Until      time.Time       // when it ends, by time.Now; zero: never
}

// clone returns a copy that shares no slice with c.
func (c Config) clone() Config {
	c.TrustedProxies = slices.Clone(c.TrustedProxies)
	c.Rules = slices.Clone(c.Rules)
	for i := range c.Rules {
		r := &c.Rules[i]
		r.Exempt, r.Deny, r.Limits = slices.Clone(r.Exempt), slices.Clone(r.Deny), slices.Clone(r.Limits)
		for j := range r.Limits {
			r.Limits[j].Overrides = slices.Clone(r.Limits[j].Overrides)
		}
	}
	return c
}
