package rulefile

import (
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

func (d *decoder) limit(n *yaml.Node, path string) policy.LimitConfig {
	var c policy.LimitConfig
	own := amount{n: n, path: path}
	var others []amount // of the overrides
	d.mapping(n, path,
		field{"name", text(d, &c.Name)},
		field{"algorithm", text(d, &c.Algorithm)},
		field{"limit", own.count(d)},
		field{"burst", own.most(d)},
		field{"subject", text(d, &c.Subject)},
		field{"max_delay", duration(d, &c.MaxDelay)},
		field{"shadow", yesNo(d, &c.Shadow)},
		field{"overrides", func(n *yaml.Node, path string) {
			if plain(n) {
				d.fault(n, path, "want a list")
				return
			}
			d.list(n, path, func(n *yaml.Node, path string) {
				o, a := d.override(n, path)
				c.Overrides, others = append(c.Overrides, o), append(others, a)
			})
		}},
	)
	c.Limit = own.limit(d, &c)
	for i := range c.Overrides {
		c.Overrides[i].Limit = others[i].limit(d, &c)
	}
	return c
}

func (d *decoder) override(n *yaml.Node, path string) (policy.OverrideConfig, amount) {
	var o policy.OverrideConfig
	a := amount{n: n, path: path}
	if plain(n) {
		d.fault(n, path, "want fields") // what stands there may be a secret
		return o, a
	}
	d.mapping(n, path,
		field{"subject", secret(d, &o.Subject)},
		field{"limit", a.count(d)},
		field{"burst", a.most(d)},
		field{"until", instant(d, &o.Until)},
	)
	return o, a
}

// amount is a limit and a burst as they are read: what a missing burst is depends on the algorithm, which may be named
// further down.
type amount struct {
	n     *yaml.Node // what they are fields of
	path  string
	read  algorithm.Limit
	burst *int64 // nil: not given
}

// count reads the field limit.
func (a *amount) count(d *decoder) reader {
	return func(n *yaml.Node, path string) {
		if !d.is(n, path, yaml.ScalarNode, `a limit such as "100/10s"`) {
			return
		}
		l, err := algorithm.ParseLimit(n.Value)
		if err != nil {
			d.fault(n, path, "%s", strings.TrimPrefix(err.Error(), "algorithm: limit "))
			return
		}
		a.read = l
	}
}

// most reads the field burst.
func (a *amount) most(d *decoder) reader {
	return func(n *yaml.Node, path string) {
		a.burst = new(int64)
		whole(d, a.burst, math.MinInt64)(n, path)
	}
}

// limit returns what was read, with the burst filled in.
func (a *amount) limit(d *decoder, c *policy.LimitConfig) algorithm.Limit {
	l := a.read
	if _, given := d.at[a.path+".limit"]; !given && !d.hidden(a.path) {
		d.fault(a.n, a.path+".limit", `missing: want a limit such as "100/10s"`)
	}
	burst := a.burst
	if l == (algorithm.Limit{}) {
		// One fault already. Another limit stands in, so that the burst is not found faulty by comparison with none.
		l = algorithm.Limit{Count: 1, Period: time.Second}
		if burst != nil && *burst > 0 {
			burst = nil
		}
	}
	switch {
	case burst != nil:
		l.Burst = *burst
	case c.MaxDelay > 0 && policy.Holds(c.Algorithm): // stands for it
	case policy.HasBurst(c.Algorithm):
		l.Burst = l.Count
	}
	return l
}
