package rulefile

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// reader reads the value of one field.
type reader func(n *yaml.Node, path string)

// text reads text into dst. Numbers and the like are to be quoted, so that 1.10 stays what it is.
func text[T ~string](d *decoder, dst *T) reader {
	return func(n *yaml.Node, path string) {
		switch {
		case !d.is(n, path, yaml.ScalarNode, "text"):
		case n.ShortTag() != "!!str":
			d.fault(n, path, "want text, have %s: quote it", kind(n))
		case n.Value == "":
			d.fault(n, path, "empty: want text")
		default:
			*dst = T(n.Value)
		}
	}
}

// whole reads decimal digits into dst: at least the number least.
func whole[T int | int64](d *decoder, dst *T, least int64) reader {
	return func(n *yaml.Node, path string) {
		if !d.is(n, path, yaml.ScalarNode, "a whole number") {
			return
		}
		digits := strings.TrimPrefix(n.Value, "-")
		plain := n.ShortTag() == "!!int" || n.ShortTag() == "!!float" // digits beyond 64 bits count as a float
		if !plain || digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0' {
			d.fault(n, path, "want a whole number in decimal digits, have %s", kind(n))
			return
		}
		v, err := strconv.ParseInt(n.Value, 10, 64)
		switch {
		case err != nil || int64(T(v)) != v:
			d.fault(n, path, "%s: want a number within 64 bits", short(n.Value))
		case v < least:
			d.fault(n, path, "%d: want at least %d", v, least)
		default:
			*dst = T(v)
		}
	}
}

// duration reads a time with its unit into dst, more than 0.
func duration(d *decoder, dst *time.Duration) reader {
	const want = `a duration with its unit, such as "50ms"`
	return func(n *yaml.Node, path string) {
		if !d.is(n, path, yaml.ScalarNode, want) {
			return
		}
		if n.ShortTag() != "!!str" {
			d.fault(n, path, "want %s, have %s", want, kind(n))
			return
		}
		v, err := time.ParseDuration(n.Value)
		switch {
		case err != nil:
			d.fault(n, path, "%q: want %s", short(n.Value), want)
		case v <= 0:
			d.fault(n, path, "%v: want more than 0", v)
		default:
			*dst = v
		}
	}
}

// prefixes reads a list of networks, "10.0.0.0/8", and single addresses into dst.
func prefixes(d *decoder, dst *[]netip.Prefix) reader {
	const want = `a network such as "10.0.0.0/8", or an address`
	return func(n *yaml.Node, path string) {
		d.list(n, path, func(n *yaml.Node, path string) {
			var s string
			text(d, &s)(n, path)
			if s == "" {
				*dst = append(*dst, netip.Prefix{})
				return
			}
			p, err := netip.ParsePrefix(s)
			if a, addrErr := netip.ParseAddr(s); addrErr == nil && a.Zone() == "" {
				p, err = a.Prefix(a.BitLen())
			}
			if err != nil {
				d.fault(n, path, "%q: want %s", short(s), want)
			}
			*dst = append(*dst, p.Masked())
		})
	}
}

// yesNo reads true or false into dst.
func yesNo(d *decoder, dst *bool) reader {
	return func(n *yaml.Node, path string) {
		switch {
		case !d.is(n, path, yaml.ScalarNode, "true or false"):
		case n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false":
			d.fault(n, path, "want true or false, have %s", kind(n))
		default:
			*dst = n.Value == "true"
		}
	}
}

// instant reads a time into dst.
func instant(d *decoder, dst *time.Time) reader {
	const want = "a time such as 2027-01-01T00:00:00Z"
	return func(n *yaml.Node, path string) {
		if !d.is(n, path, yaml.ScalarNode, want) {
			return
		}
		t, err := time.Parse(time.RFC3339, n.Value)
		if err != nil {
			d.fault(n, path, "want %s, have %s", want, kind(n))
			return
		}
		*dst = t
	}
}

// secret is text that no fault repeats.
func secret(d *decoder, dst *string) reader {
	return func(n *yaml.Node, path string) {
		switch {
		case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
			d.is(n, path, yaml.ScalarNode, "text")
		case n.ShortTag() != "!!str":
			d.fault(n, path, "want text, have a value of another type: quote it")
		case n.Value == "":
			d.fault(n, path, "empty: want text")
		default:
			*dst = n.Value
		}
	}
}

// plain tells whether n is a single value.
func plain(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" }

// secrets reads a list of texts that no fault repeats.
func secrets(d *decoder, dst *[]string) reader {
	return func(n *yaml.Node, path string) {
		if plain(n) {
			d.fault(n, path, "want a list")
			return
		}
		d.list(n, path, func(n *yaml.Node, path string) {
			var s string
			secret(d, &s)(n, path)
			*dst = append(*dst, s)
		})
	}
}
