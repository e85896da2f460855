#!/bin/sh
# nginx before a service (Sluice's own echo), asking Sluice about each request.
. "$(dirname "$0")/../start.sh"
port PORT 8088
port CHECK_PORT 9181
port SERVICE_PORT 9000

build
service "$SERVICE_PORT"
start "$CHECK_PORT" "$sluice" serve "$here/rules.yaml" --listen off --check "127.0.0.1:$CHECK_PORT" --check-status 403 --admin off
nginx_on "$PORT" 'daemon off; pid nginx.pid;' \
	-e "s/:8088;/:$PORT;/" -e "s/:9181;/:$CHECK_PORT;/" -e "s/:9000;/:$SERVICE_PORT;/" -e 's/^http {/& access_log off;/'

try 4 curl -i -X POST "http://127.0.0.1:$PORT/login"
hold
