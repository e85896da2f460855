#!/bin/sh
# Starts Sluice, a service (Sluice's own echo) and nginx, until Ctrl-C. Then: curl -i -X POST http://127.0.0.1:8088/login
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$tmp"' EXIT
trap 'exit 0' INT TERM

(cd "$here/../.." && go build -o "$tmp/sluice" ./cmd/sluice)
printf 'mode: off\nrules: [{name: none, match: /, limits: [{algorithm: fixed_window, limit: 1/h, subject: ip}]}]\n' >"$tmp/none.yaml"
"$tmp/sluice" serve "$tmp/none.yaml" --listen 127.0.0.1:9000 --admin off &
pids="$pids $!"
"$tmp/sluice" serve "$here/rules.yaml" --listen off --check 127.0.0.1:9181 --check-status 403 &
pids="$pids $!"
mkdir "$tmp/logs"
PATH=$PATH:/usr/sbin nginx -p "$tmp" -e "$tmp/logs/error.log" -c "$here/nginx.conf" -g "daemon off; pid $tmp/nginx.pid;" &
pids="$pids $!"
wait
