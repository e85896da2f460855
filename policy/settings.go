package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// settings checks all but the rules.
func (k *compiler) settings(c *Config) {
	k.redis(c.Store.Redis)
	c.Store.Timeout = cmp.Or(c.Store.Timeout, 50*time.Millisecond)
	if t := c.Store.Timeout; t < time.Millisecond || t > time.Minute {
		k.fault("store.timeout", "%v: want 1ms to 1m", t)
	}
	c.Store.Prefix = cmp.Or(c.Store.Prefix, "sluice")
	if strings.ContainsAny(c.Store.Prefix, "{}") {
		k.fault("store.prefix", "%q: want no brace, Redis reads it as a hash tag", c.Store.Prefix)
	}

	c.Failover.TripAfter = cmp.Or(c.Failover.TripAfter, 5)
	if n := c.Failover.TripAfter; n < 1 {
		k.fault("failover.trip_after", "%d: want at least 1", n)
	}
	c.Failover.OpenFor = cmp.Or(c.Failover.OpenFor, time.Second)
	if d := c.Failover.OpenFor; d < time.Millisecond {
		k.fault("failover.open_for", "%v: want at least 1ms", d)
	}
	if n := c.Failover.Instances; n < 0 {
		k.fault("failover.instances", "%d: want at least 1, or auto", n)
	}

	for i, p := range c.TrustedProxies {
		if !p.IsValid() {
			k.fault(fmt.Sprintf("trusted_proxies[%d]", i), "%v: want an address and 0 to 32 bits, or to 128 for IPv6", p)
		}
	}
	c.IPv6Prefix = cmp.Or(c.IPv6Prefix, defaultV6Bits)
	if n := c.IPv6Prefix; n < 1 || n > 128 {
		k.fault("ipv6_prefix", "%d: want 1 to 128", n)
	}
	c.Headers = cmp.Or(c.Headers, HeadersDraft)
	oneOf(k, "headers", c.Headers, HeadersDraft, HeadersX, HeadersOff)
	c.Mode = cmp.Or(c.Mode, ModeEnforce)
	oneOf(k, "mode", c.Mode, ModeEnforce, ModeShadow, ModeLocal, ModeOff)
}

// redis checks where Redis is. It never repeats the value, which may hold a password.
func (k *compiler) redis(where string) {
	scheme, rest, _ := strings.Cut(where, ":")
	switch {
	case where == "":
	case scheme == "env" && strings.TrimSpace(rest) == "":
		k.fault("store.redis", `"env:" has no name: want the name of an environment variable after it`)
	case scheme == "file" && strings.TrimSpace(rest) == "":
		k.fault("store.redis", `"file:" has no path: want the path of a file after it`)
	case scheme != "env" && scheme != "file" && !strings.Contains(where, "://"):
		k.fault("store.redis", "want env:NAME, file:PATH or a URL")
	}
}
