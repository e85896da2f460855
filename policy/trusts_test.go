package policy_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/sluice-go/sluice/policy"
)

// Who is trusted is the peer, whatever it says of others; an address comes mapped, with a zone or a port, or is none.
func TestTrusts(t *testing.T) {
	rules, err := policy.New(policy.Config{TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("::ffff:10.0.0.0/104"), netip.MustParsePrefix("fe80::/10"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[string]bool{
		"192.0.2.7:80": true, "[::ffff:192.0.2.7]:80": true, "10.1.2.3:4": true, "[::ffff:10.1.2.3]:4": true, "[fe80::1%eth0]:1": true,
		"192.0.3.1:80": false, "11.0.0.1:1": false, "[2001:db8::1]:1": false, "@": false, "": false, "192.0.2.7:http": false,
	} {
		r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {"192.0.2.1"}}}
		if got := rules.Trusts(r); got != want {
			t.Errorf("%q: %v, want %v", peer, got, want)
		}
	}
	none, err := policy.New(policy.Config{})
	if err != nil || none.Trusts(&http.Request{RemoteAddr: "127.0.0.1:1"}) {
		t.Errorf("without trusted proxies somebody is trusted, %v", err)
	}
}
