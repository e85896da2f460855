#!/bin/sh
# Caddy before a service (Sluice's own echo), asking Sluice about each request.
. "$(dirname "$0")/../start.sh"
needs caddy caddy
port PORT 8089
port CHECK_PORT 9181
port SERVICE_PORT 9000

build
service "$SERVICE_PORT"
start "$CHECK_PORT" "$sluice" serve "$here/rules.yaml" --listen off --check "127.0.0.1:$CHECK_PORT" --admin off
export PORT CHECK_PORT SERVICE_PORT XDG_CONFIG_HOME="$tmp" XDG_DATA_HOME="$tmp"
start "$PORT" caddy run --config "$here/Caddyfile" --adapter caddyfile

try 4 curl -i -X POST "http://127.0.0.1:$PORT/login"
hold
