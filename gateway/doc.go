// Package gateway lets a rule file decide for services in any language, behind any proxy, and lets operators look on.
//
// [Check] answers the question of nginx's auth_request, of Traefik's ForwardAuth and of Caddy's forward_auth: may this
// request go on? [RateLimit] answers Envoy, by its rate limit service v3. [Admin] tells operators what a process runs
// on. Each of them asks the same [service.Service], so that a rule counts the same way wherever it stands.
//
// What a proxy says of a request, its method, URI, host and client, is believed from trusted_proxies alone.
package gateway
