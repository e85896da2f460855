#!/bin/sh
# Python and a Sluice process on one budget.
. "$(dirname "$0")/../start.sh"
port PORT 8080
port REDIS_PORT 6390
for python in python3 /usr/bin/python3 none; do # that has redis-py
	"$python" -c 'import redis' 2>/dev/null && break
done
[ "$python" != none ] || fail 'no Python with the module redis (Debian: apt-get install python3-redis)'

build
budget "$PORT" "$REDIS_PORT"

try 1 curl -i "http://127.0.0.1:$PORT/login"
try 1 "$python" -B "$here/login.py" "$REDIS_URL" "$tmp/token_bucket.lua" "$patience" 127.0.0.1 10
try 1 curl -i "http://127.0.0.1:$PORT/login"
hold
