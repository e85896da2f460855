#!/bin/sh
# Sluice, a Prometheus that scrapes it and watches the alerts, and Grafana with the dashboard, where there is one.
. "$(dirname "$0")/../start.sh"
needs prometheus prometheus
port PORT 8080
port ADMIN_PORT 9180
port PROMETHEUS_PORT 9090
port GRAFANA_PORT 3000

# grafana starts one that needs no login and has the data source and the dashboard.
grafana() {
	mkdir -p "$tmp/grafana/datasources" "$tmp/grafana/dashboards"
	cat >"$tmp/grafana/datasources/prometheus.yaml" <<-END
		apiVersion: 1
		datasources: [{name: Prometheus, type: prometheus, url: "http://127.0.0.1:$PROMETHEUS_PORT", isDefault: true}]
	END
	cat >"$tmp/grafana/dashboards/sluice.yaml" <<-END
		apiVersion: 1
		providers: [{name: sluice, type: file, options: {path: "$here/../grafana"}}]
	END
	export GF_SERVER_HTTP_ADDR=127.0.0.1 GF_SERVER_HTTP_PORT="$GRAFANA_PORT" GF_PATHS_PROVISIONING="$tmp/grafana" \
		GF_PATHS_DATA="$tmp/grafana/data" GF_PATHS_LOGS="$tmp/grafana/logs" GF_LOG_LEVEL=error \
		GF_AUTH_ANONYMOUS_ENABLED=true GF_AUTH_ANONYMOUS_ORG_ROLE=Admin
	start "$GRAFANA_PORT" grafana-server --homepath "${GRAFANA_HOME:-/usr/share/grafana}"
	echo "Grafana: http://127.0.0.1:$GRAFANA_PORT/d/$(sed -n 's/^  "uid": "\(.*\)",$/\1/p' "$here/../grafana/sluice.json")"
}

# found QUERY: what Prometheus answers, as soon as that is something.
found() {
	tries=100
	until answer=$(curl -G "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/query" --data-urlencode "query=$1") &&
		[ "${answer%'"result":[]}}'}" = "$answer" ]; do
		[ $((tries -= 1)) -gt 0 ] || fail "Prometheus finds nothing: $answer"
		sleep 0.2
	done
	echo "$answer"
}

build
start "$ADMIN_PORT" "$sluice" serve "$here/../nginx/rules.yaml" --listen "127.0.0.1:$PORT" --admin "127.0.0.1:$ADMIN_PORT"
cp "$here/alerts.yaml" "$tmp"
sed -e "s/:9180\"/:$ADMIN_PORT\"/" ${once:+-e 's/_interval: 5s/_interval: 1s/g'} "$here/prometheus.yaml" >"$tmp/prometheus.yaml"
start "$PROMETHEUS_PORT" prometheus --config.file="$tmp/prometheus.yaml" --storage.tsdb.path="$tmp/data" \
	--web.listen-address="127.0.0.1:$PROMETHEUS_PORT" --log.level=warn
echo "Prometheus: http://127.0.0.1:$PROMETHEUS_PORT/alerts"
if command -v grafana-server >/dev/null; then
	grafana
else
	echo 'No grafana-server in PATH: in a Grafana of yours, add that Prometheus and import examples/grafana/sluice.json'
fi

try 4 curl -i -X POST "http://127.0.0.1:$PORT/login"
if [ -n "$once" ]; then
	try 1 found 'sluice_decisions_total{rule="login",outcome="denied"}'
	try 1 curl "http://127.0.0.1:$PROMETHEUS_PORT/api/v1/rules"
fi
hold
