package gateway_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
)

// limitsOfExample reads the example as Envoy does, and returns the rate limits of its one route.
func limitsOfExample(t *testing.T) []*route.RateLimit {
	t.Helper()
	text, err := os.ReadFile("../examples/envoy/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var config bootstrap.Bootstrap
	if err := protojson.Unmarshal(asJSON, &config); err != nil {
		t.Fatal(err)
	}
	if err := config.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	var manager hcm.HttpConnectionManager
	if err := config.StaticResources.Listeners[0].FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(&manager); err != nil {
		t.Fatal(err)
	}
	if err := manager.ValidateAll(); err != nil {
		t.Fatal(err)
	}
	return manager.GetRouteConfig().VirtualHosts[0].Routes[0].GetRoute().RateLimits
}

// describe makes the descriptor that Envoy would make of a request.
func describe(t *testing.T, limit *route.RateLimit, address string, headers map[string]string) *common.RateLimitDescriptor {
	t.Helper()
	d := &common.RateLimitDescriptor{}
	add := func(key, value string) {
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	for _, action := range limit.Actions {
		header := action.GetRequestHeaders()
		switch {
		case action.GetRemoteAddress() != nil:
			add("remote_address", address)
		case header != nil && headers[header.HeaderName] != "":
			add(header.DescriptorKey, headers[header.HeaderName])
		case header != nil && header.SkipIfAbsent:
		default:
			t.Fatalf("Envoy would make no descriptor: %v", action)
		}
	}
	return d
}

// The example's Envoy configuration is valid, and its descriptors are what its rules match.
func TestEnvoyExample(t *testing.T) {
	rules, err := os.ReadFile("../examples/envoy/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, string(rules))
	e := startEnvoy(t, s)
	limits := limitsOfExample(t)
	if len(limits) != 1 {
		t.Fatalf("%d rate limits, want one descriptor for a request", len(limits))
	}
	ask := func(method, path, key string) string {
		return text(e.ask(t, 0, describe(t, limits[0], "192.0.2.1", map[string]string{
			":method": method, ":path": path, ":authority": "shop.example", "x-api-key": key,
		})))
	}
	for i, want := range []string{"OK login 2", "OK login 1", "OK login 0", "OVER_LIMIT login 0"} {
		if got := ask("POST", "/login?a=b", "k"); !strings.HasSuffix(got, want) {
			t.Errorf("login %d: %s, want %s", i, got, want)
		}
	}
	for i, c := range []struct{ key, want string }{{"k", "OK api 99"}, {"", "OK api 99"}, {"k", "OK api 98"}, {"", "OK api 98"}} {
		if got := ask("GET", "/items", c.key); !strings.HasSuffix(got, c.want) {
			t.Errorf("items %d: %s, want %s", i, got, c.want)
		}
	}
}
