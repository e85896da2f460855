package rulefile

import (
	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/policy"
)

// config reads the whole file.
func (d *decoder) config(n *yaml.Node) policy.Config {
	var c policy.Config
	d.at[""] = position{n.Line, n.Column}
	if n.Kind != yaml.MappingNode {
		d.dead = true
	}
	rules := false
	d.mapping(n, "",
		field{"store", func(n *yaml.Node, path string) { d.store(n, path, &c.Store) }},
		field{"failover", func(n *yaml.Node, path string) { d.failover(n, path, &c.Failover) }},
		field{"trusted_proxies", prefixes(d, &c.TrustedProxies)},
		field{"ipv6_prefix", whole(d, &c.IPv6Prefix, 1)},
		field{"headers", text(d, &c.Headers)},
		field{"mode", text(d, &c.Mode)},
		field{"rules", func(n *yaml.Node, path string) {
			rules = true
			d.list(n, path, func(n *yaml.Node, path string) { c.Rules = append(c.Rules, d.rule(n, path)) })
			if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				d.fault(n, path, "empty: want at least one rule")
			}
		}},
	)
	if !rules && !d.dead {
		d.fault(n, "rules", "missing: want at least one rule")
	}
	return c
}

func (d *decoder) store(n *yaml.Node, path string, c *policy.StoreConfig) {
	d.mapping(n, path,
		field{"redis", text(d, &c.Redis)},
		field{"timeout", duration(d, &c.Timeout)},
		field{"prefix", text(d, &c.Prefix)},
	)
}

func (d *decoder) failover(n *yaml.Node, path string, c *policy.FailoverConfig) {
	d.mapping(n, path,
		field{"trip_after", whole(d, &c.TripAfter, 1)},
		field{"open_for", duration(d, &c.OpenFor)},
		field{"instances", func(n *yaml.Node, path string) {
			if n.Kind != yaml.ScalarNode || n.Value != "auto" {
				whole(d, &c.Instances, 1)(n, path)
			}
		}},
		field{"group", text(d, &c.Group)},
	)
}

func (d *decoder) rule(n *yaml.Node, path string) policy.RuleConfig {
	var c policy.RuleConfig
	d.mapping(n, path,
		field{"name", text(d, &c.Name)},
		field{"match", text(d, &c.Match)},
		field{"on_outage", text(d, &c.OnOutage)},
		field{"denial", func(n *yaml.Node, path string) { d.denial(n, path, &c.Denial) }},
		field{"cost", func(n *yaml.Node, path string) { d.cost(n, path, &c.Cost) }},
		field{"settle", text(d, &c.Settle)},
		field{"exempt", secrets(d, &c.Exempt)},
		field{"deny", secrets(d, &c.Deny)},
		field{"limits", func(n *yaml.Node, path string) {
			d.list(n, path, func(n *yaml.Node, path string) { c.Limits = append(c.Limits, d.limit(n, path)) })
		}},
	)
	return c
}

func (d *decoder) denial(n *yaml.Node, path string, c *policy.Denial) {
	d.mapping(n, path,
		field{"status", whole(d, &c.Status, 1)},
		field{"type", text(d, &c.Type)},
		field{"body", text(d, &c.Body)},
	)
}

func (d *decoder) cost(n *yaml.Node, path string, c *policy.CostConfig) {
	d.mapping(n, path,
		field{"header", text(d, &c.Header)},
		field{"default", whole(d, &c.Default, 1)},
		field{"min", whole(d, &c.Min, 1)},
		field{"max", whole(d, &c.Max, 1)},
	)
	if d.unread[path+".default"] {
		c.Default = c.Min // one fault is enough: nothing is compared with what could not be read
	}
}
