package policy

import (
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/algorithm"
)

// cost is a compiled CostConfig.
type cost struct {
	header             string // canonical; "": none
	usual, least, most int64
	peers              peers
}

// Cost returns how many units req is charged. It is the number in the header that the rule names, if the peer is a
// trusted proxy and the header is there once, in decimal digits: at most the rule's max, which stands for whatever is
// above. Anything else, and a number below the rule's min, costs the default.
func (r *Rule) Cost(req *http.Request) int64 {
	c := &r.cost
	if c.header == "" {
		return max(1, c.usual)
	}
	lines := req.Header[c.header]
	if len(lines) != 1 {
		return c.usual
	}
	n, ok := number(lines[0], c.most)
	if !ok || n < c.least || !c.peers.sent(req) {
		return c.usual
	}
	return n
}

// Actual returns what the response says that its request cost after all: the number in the header that Settle names,
// or in the trailer of that name, from 0 to the rule's max. h is what the handler has set, trailers included. It is
// false where the rule settles nothing, and where that header is absent, there twice, or no number: then the cost that
// was charged stands.
func (r *Rule) Actual(h http.Header) (n int64, ok bool) {
	if r.Settle == "" {
		return 0, false
	}
	lines := h[http.TrailerPrefix+r.Settle]
	if len(lines) == 0 {
		lines = h[r.Settle]
	}
	if len(lines) != 1 {
		return 0, false
	}
	return number(lines[0], r.cost.most)
}

// number reads decimal digits: no sign, no exponent, no prefix of a base. What is above most is most.
func number(text string, most int64) (int64, bool) {
	text = strings.Trim(text, " \t")
	if text == "" {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		digit := int64(text[i]) - '0'
		if digit < 0 || digit > 9 {
			return 0, false
		}
		if n <= most { // both are below 2^52: no overflow
			n = n*10 + digit
		}
	}
	return min(n, most), true
}

// cost checks a rule's cost and settle.
func (k *compiler) cost(path string, c *RuleConfig, r *Rule) {
	at, cc := path+".cost", &c.Cost
	bounded := cc.Header != "" || c.Settle != ""
	if cc.Header != "" && !isToken(cc.Header) {
		k.fault(at+".header", "%q: want the name of a header, a token such as X-Cost", cc.Header)
	}
	if cc.Default == 0 {
		cc.Default = 1
	}
	switch {
	case cc.Default < 1:
		k.fault(at+".default", "%d: want at least 1", cc.Default)
	case cc.Default >= algorithm.Bound:
		k.fault(at+".default", "%d: want at most %d", cc.Default, int64(algorithm.Bound)-1)
	case cc.Min < 0:
		k.fault(at+".min", "%d: want at least 1", cc.Min)
	case cc.Min > cc.Default:
		k.fault(at+".min", "%d: want at most the default, %d", cc.Min, cc.Default)
	case cc.Min != 0 && cc.Header == "":
		k.fault(at+".header", "missing: want the header that min bounds")
	case cc.Max == 0 && bounded:
		k.fault(at+".max", "missing: want the most that one request is charged")
	case cc.Max != 0 && !bounded:
		k.fault(at+".header", "missing: want the header that max bounds, or settle")
	case bounded && cc.Max < cc.Default:
		k.fault(at+".max", "%d: want at least the default, %d", cc.Max, cc.Default)
	case cc.Max >= algorithm.Bound:
		k.fault(at+".max", "%d: want at most %d", cc.Max, int64(algorithm.Bound)-1)
	}
	r.cost = cost{usual: cc.Default, least: cc.Min, most: cc.Max, peers: k.peers}
	if cc.Header != "" {
		r.cost.header = http.CanonicalHeaderKey(cc.Header)
	}
	if r.cost.least == 0 {
		r.cost.least = cc.Default
	}
	if c.Settle == "" {
		return
	}
	name, ok := strings.CutPrefix(c.Settle, "response:")
	if !ok || !isToken(name) {
		k.fault(path+".settle", "%q: want response:NAME, with the name of a header such as X-Actual-Cost", c.Settle)
		return
	}
	r.Settle = http.CanonicalHeaderKey(name)
}
