package policy_test

import (
	"fmt"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/sluice-go/sluice/algorithm"
	"github.com/sluice-go/sluice/policy"
)

func ExampleRules_Match() {
	rules, err := policy.New(policy.Config{Rules: []policy.RuleConfig{
		{Name: "login", Match: "POST /login", Limits: []policy.LimitConfig{
			{Algorithm: "token_bucket", Limit: algorithm.Limit{Count: 5, Period: time.Minute, Burst: 10}, Subject: "ip"},
			{Algorithm: "fixed_window", Limit: algorithm.Limit{Count: 1000, Period: time.Hour}, Subject: "global"},
		}},
		{Name: "all", Match: "always", Limits: []policy.LimitConfig{
			{Algorithm: "sliding_window", Limit: algorithm.Limit{Count: 100, Period: 10 * time.Second}, Subject: "header:X-API-Key"},
		}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	req := httptest.NewRequest("POST", "/login", nil)
	req.RemoteAddr = "192.0.2.1:4711"
	for _, rule := range rules.Match(req) {
		for _, ask := range rule.Asks(req, 1) {
			fmt.Println(ask.Key.Rule, ask.Key.Subject, ask.Strategy.Limit())
		}
	}
	// Output:
	// login/token_bucket-ip 192.0.2.1 5/min burst 10
	// login/fixed_window-global global 1000/h
	// all 192.0.2.1 100/10s
}

func ExampleNew_faults() {
	_, err := policy.New(policy.Config{Rules: []policy.RuleConfig{
		{Name: "login", Match: "post /login", Limits: []policy.LimitConfig{
			{Algorithm: "token_bucket", Limit: algorithm.Limit{Count: 5, Period: time.Minute}, Subject: "user"},
		}},
	}})
	fmt.Println(err)
	// Output:
	// policy: rules[0].match: pattern "post /login": method "post" never arrives, methods are upper case: want "POST"
	// policy: rules[0].limits[0].burst: 0: want at least 1
	// policy: rules[0].limits[0].subject: "user": want ip, global, header:NAME, cookie:NAME, query:NAME or path:WILDCARD
}

func ExampleIP() {
	client := policy.IP(netip.MustParsePrefix("10.0.0.0/8"))

	req := httptest.NewRequest("GET", "/", nil)
	req.RemoteAddr = "10.0.0.1:4711" // our load balancer
	req.Header.Set("X-Forwarded-For", "198.51.100.7, 192.0.2.1")
	fmt.Println(client(req)) // the left one is what the client claimed

	req.RemoteAddr = "[2001:db8:1:2::3]:4711" // a stranger
	fmt.Println(client(req))
	// Output:
	// 192.0.2.1
	// 2001:db8:1:2::/64
}

func ExampleOr() {
	subject := policy.Or(policy.Header("X-API-Key"), policy.IP())

	req := httptest.NewRequest("GET", "/", nil)
	req.RemoteAddr = "192.0.2.1:4711"
	fmt.Println(subject(req))

	req.Header.Set("X-API-Key", "s3cret")
	fmt.Println(subject(req))
	// Output:
	// 192.0.2.1
	// header:0d23e0b7f5de2a5dac42e899fffb0dad
}
