FUZZTIME ?= 10s

# The packages that a program links which limits rates, and what they are tested with: `make race PKGS="$(CORE)"`.
CORE := . $(patsubst %,./%/...,$(wildcard algorithm store failover policy httplimit service internal))
PKGS ?= ./...

.DEFAULT_GOAL := help
.PHONY: help test race race-core fuzz bench chaos lint build redis-server c-compiler

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: redis-server ## vet and test everything
	go vet ./...
	go test -shuffle=on $(PKGS)

race: redis-server c-compiler ## test everything under the race detector; PKGS="./store/..." for a part
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

bench: redis-server ## measure against peers, in one run, and print ratios; then the stores and algorithms alone
	cd bench && go test -count=1 -v .
	go test -run '^$$' -bench . -benchmem ./store/... ./algorithm/... ./failover/...

chaos: redis-server ## break real Redis servers under load, the long form: a line each
	CHAOS=long go test -count=1 -v -timeout 30m ./chaos

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

c-compiler:
	@$(call install,$${CC:-gcc},gcc libc6-dev,the race detector needs a C compiler)

# install makes sure that there is a command, from a Debian package: $(call install,command,packages,reason)
define install
command -v $(1) >/dev/null && exit 0; \
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(2); \
else \
	echo "$(3), and there is none in PATH: install $(2) (Debian: apt-get install $(2))" >&2; exit 1; \
fi
endef
