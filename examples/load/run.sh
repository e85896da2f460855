#!/bin/sh
# Sluice, and two seconds of load on each of its algorithms, or one with --once. It ends by itself.
. "$(dirname "$0")/../start.sh"
port PORT 8080
duration=${once:+1s}
duration=${duration:-2s}

build
start "$PORT" "$sluice" serve "$root/examples/rules.yaml" --listen "127.0.0.1:$PORT" --admin off
(cd "$root" && go build -o "$tmp/load" ./examples/load)
for algorithm in token fixed sliding leaky; do
	echo "$algorithm, 10/s:"
	"$tmp/load" --url "http://127.0.0.1:$PORT/$algorithm" --workers 20 --duration "$duration"
done
