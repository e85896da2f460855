package rulefile_test

import (
	"fmt"

	"github.com/sluice-go/sluice/policy"
	"github.com/sluice-go/sluice/policy/rulefile"
)

func ExampleParse() {
	config, err := rulefile.Parse("rules.yaml", []byte(`
rules:
  - name: login
    match: "POST /login"
    limits:
      - {algorithm: token_bucket, limit: 5/min, burst: 10, subject: ip}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rules, err := policy.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range rules.All() {
		fmt.Println(rule.Name, rule.Match, rule.Limits[0].Name, rule.Limits[0].Strategy.Limit())
	}
	// Output:
	// login POST /login token_bucket-ip 5/min burst 10
}

func ExampleParse_faults() {
	_, err := rulefile.Parse("rules.yaml", []byte(`
rules:
  - name: login
    match: "POST /login"
    limits:
      - {algorithm: token_bucket, limit: 5 per min, subject: ip}
      - {algorithm: leaky_buckets, limit: 5/min, subjekt: ip}
`))
	fmt.Println(err)
	// Output:
	// rules.yaml:6:42: rules[0].limits[0].limit: "5 per min": want count/period, such as "100/10s"
	// rules.yaml:7:9: rules[0].limits[1].subject: missing: want ip, global, header:NAME, cookie:NAME, query:NAME or path:WILDCARD
	// rules.yaml:7:21: rules[0].limits[1].algorithm: "leaky_buckets": want one of token_bucket, fixed_window, sliding_window, leaky_bucket
	// rules.yaml:7:50: rules[0].limits[1].subjekt: unknown field: want one of name, algorithm, limit, burst, subject, max_delay, shadow, overrides
}
