#!/bin/sh
# Envoy before a service (Sluice's own echo), with Sluice as its rate limit service.
. "$(dirname "$0")/../start.sh"
command -v envoy >/dev/null ||
	fail 'no envoy in PATH (https://www.envoyproxy.io/docs/envoy/latest/start/install; Debian has no package)'
port PORT 10000
port RATE_LIMIT_PORT 8081
port SERVICE_PORT 9000

build
service "$SERVICE_PORT"
start "$RATE_LIMIT_PORT" "$sluice" serve "$here/rules.yaml" --listen off --envoy "127.0.0.1:$RATE_LIMIT_PORT" --admin off
sed -e "s/port_value: 10000}/port_value: $PORT}/" -e "s/port_value: 8081}/port_value: $RATE_LIMIT_PORT}/" \
	-e "s/port_value: 9000}/port_value: $SERVICE_PORT}/" "$here/envoy.yaml" >"$tmp/envoy.yaml"
start "$PORT" envoy --config-path "$tmp/envoy.yaml" --log-level warning --disable-hot-restart

try 4 curl -i -X POST "http://127.0.0.1:$PORT/login"
hold
