FUZZTIME ?= 10s

# The packages that a program links which limits rates, and what they are tested with: `make race PKGS="$(CORE)"`.
CORE := . $(patsubst %,./%/...,$(wildcard algorithm store failover policy httplimit grpclimit telemetry service internal))
PKGS ?= ./...

.DEFAULT_GOAL := help
.PHONY: help test race race-core fuzz bench bench-full bench-go test-bench chaos soak lint build redis-server nginx languages promtool caddy curl c-compiler docs play test-browser test-examples chromium

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: redis-server nginx languages promtool caddy curl ## vet and test everything
	go vet ./...
	go test -shuffle=on $(PKGS)
	@if [ "$(PKGS)" = ./... ]; then $(MAKE) --no-print-directory test-bench test-examples test-browser; fi

test-bench: redis-server ## test the program that measures, in a module of its own
	cd bench && go vet ./... && go test -count=1 -shuffle=on ./...

race: redis-server nginx languages promtool caddy curl c-compiler ## test everything under the race detector; PKGS="./store/..." for a part
	go test -race -shuffle=on $(PKGS)

race-core: ## test what a rate-limited program links under the race detector
	$(MAKE) race PKGS="$(CORE)"

fuzz: ## run each fuzz target for FUZZTIME, 10s by default
	@for pkg in $$(go list $(PKGS)); do \
		targets=$$(go test -list '^Fuzz' $$pkg) || { echo "$$targets"; exit 1; }; \
		for target in $$(echo "$$targets" | grep '^Fuzz'); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

bench: redis-server ## measure beside other limiters, two minutes: each promised ratio, and whether it holds
	cd bench && go run . --out out/latest.json

bench-full: redis-server ## the same with growth, a cluster and a shared client, 15 minutes: writes docs/performance.md
	cd bench && go run . --full --out out/latest.json --docs ../docs

bench-go: ## run the Go benchmarks of stores and algorithms alone
	go test -run '^$$' -bench . -benchmem ./store/... ./algorithm/... ./failover/...

chaos: redis-server ## break real Redis servers under load, the long form: a line each
	CHAOS=long go test -count=1 -v -timeout 30m ./chaos

# The length may be given: FOR=5m is the short form.
FOR ?= 1h

soak: redis-server ## two processes under 2,000 requests a second for an hour, with reloads and faults; FOR=5m: the short form
	SOAK=$(FOR) go test -count=1 -v -timeout 0 -run '^TestSoak$$' ./soak

docs: ## run the experiments of docs/algorithms.md again, and write their figures and drawings
	go test -count=1 -run '^TestDocs$$' ./lab -update

play: ## build the playground's engine anew, after a change to what it is made of
	go test -count=1 -run '^TestBuiltIsUpToDate$$' ./lab/play -update

test-browser: ## test the playground in headless Chromium: if there is one; with CI set there must be
	@if [ -n "$$CI" ]; then $(MAKE) --no-print-directory chromium || exit 1; fi; \
	if command -v $${CHROMIUM:-chromium} >/dev/null; then \
		cd lab/play/browser && go vet ./... && go test -count=1 -shuffle=on ./...; \
	else \
		echo "no chromium in PATH: the playground is not tested in a browser (Debian: apt-get install chromium)"; \
	fi

test-examples: ## test the limits in front of chi, gin and echo, in a module of their own
	cd examples/routers && go vet ./... && go test -count=1 -shuffle=on ./...

lint: ## check format, vet and staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	@if go tool -n staticcheck >/dev/null 2>&1; then echo go tool staticcheck ./...; go tool staticcheck ./...; \
	else echo "staticcheck is no tool of go.mod: not run"; fi

build: ## build the command into bin/
	go build ./...
	go build -trimpath -o bin/ ./cmd/...

# The tests start servers of their own; one that the package's installation starts is not used.
redis-server:
	@$(call install,$${REDIS_SERVER:-redis-server},redis-server,the tests run real Redis servers)

# One from the package is not started: the tests start their own. Without CI they go without, and say so.
nginx:
	@[ -n "$$CI" ] || exit 0; \
	$(call install,$${NGINX:-nginx},nginx-light,the gateway is tested behind a real nginx)

# For the clients in other languages. Without CI the tests of those that lack are left out, and say so.
languages:
	@[ -n "$$CI" ] || exit 0; \
	for python in python3 /usr/bin/python3; do \
		$$python -c 'import redis' 2>/dev/null && [ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ] && exit 0; \
	done; \
	$(call install,ngx_http_lua_module,python3-redis libnginx-mod-http-lua,the clients in Python and in Lua for nginx are tested)

# For the alerts and the dashboard, likewise.
promtool:
	@[ -n "$$CI" ] || exit 0; \
	$(call install,promtool,prometheus,the alerts and the dashboard are checked by Prometheus itself)

# For the examples, likewise: 12 MB for Caddy.
caddy:
	@[ -n "$$CI" ] || exit 0; \
	$(call install,caddy,caddy,an example is run behind a real Caddy)

curl:
	@[ -n "$$CI" ] || exit 0; \
	$(call install,curl,curl,the examples send their requests by curl)

c-compiler:
	@$(call install,$${CC:-gcc},gcc libc6-dev,the race detector needs a C compiler)

chromium:
	@$(call install,$${CHROMIUM:-chromium},chromium,the playground is tested in a browser)

# install makes sure that there is a command, from a Debian package: $(call install,command,packages,reason)
define install
command -v $(1) >/dev/null && exit 0; \
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(2); \
else \
	echo "$(3), and there is none in PATH: install $(2) (Debian: apt-get install $(2))" >&2; exit 1; \
fi
endef
