#!/bin/sh
# chi, gin and echo behind the same limits, in process.
. "$(dirname "$0")/../start.sh"
needs go golang
port CHI_PORT 8091
port GIN_PORT 8092
port ECHO_PORT 8093

(cd "$here" && go build -o "$tmp/serve" ./serve)
export GIN_MODE=release
start "$CHI_PORT" "$tmp/serve" chi "127.0.0.1:$CHI_PORT"
start "$GIN_PORT" "$tmp/serve" gin "127.0.0.1:$GIN_PORT"
start "$ECHO_PORT" "$tmp/serve" echo "127.0.0.1:$ECHO_PORT"

try 4 curl -i "http://127.0.0.1:$CHI_PORT/users/7"
try 4 curl -i "http://127.0.0.1:$GIN_PORT/users/7"
try 4 curl -i -X POST "http://127.0.0.1:$ECHO_PORT/login"
hold
