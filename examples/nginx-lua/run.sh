#!/bin/sh
# nginx that asks Redis itself, on one budget with a Sluice process.
. "$(dirname "$0")/../start.sh"
port PORT 8090
port SLUICE_PORT 8080
port REDIS_PORT 6390
[ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] ||
	fail 'nginx has no Lua module (Debian: apt-get install libnginx-mod-http-lua)'

build
budget "$SLUICE_PORT" "$REDIS_PORT"
cp "$here/sluice.lua" "$tmp"
nginx_on "$PORT" '' -e "s/:8090;/:$PORT;/" -e "s/port = 6379,/port = $REDIS_PORT,/" -e "s/timeout = 50,/timeout = $patience,/"

try 1 curl -i "http://127.0.0.1:$SLUICE_PORT/login"
try 10 curl -i "http://127.0.0.1:$PORT/"
try 1 curl -i "http://127.0.0.1:$SLUICE_PORT/login"
hold
