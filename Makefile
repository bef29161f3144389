# Builds, runs and tests the service. `make help` lists the targets.
SHELL := /bin/sh
.DEFAULT_GOAL := help

BIN      ?= bin
RUN_DIR  ?= .run
VERSION  ?= 0.1.0
COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
BUILT_AT ?= $(shell date -u +%Y-%m-%dT%H:%M:%SZ)
FUZZTIME ?= 5s
FOR      ?= 10m
GO       ?= go
# The packages that take longest start first, so that the last one does not run alone.
TESTS    ?= $(SLOWEST) ./...
SLOWEST   = ./test/e2e ./backend/internal/web ./plugins/realdevice ./daemon/internal/scaffold ./ctl/internal/cli \
            ./backend/internal/app ./backend/internal/storetest ./daemon/internal/pluginhost ./backend/internal/db \
            ./backend/service-backend ./backend/server ./test/recipes
# RACE=1 detects races, FULL=1 runs every repetition of every check.
RACE     ?=
FULL     ?=
# C translated to Go, and password hashing: the race detector makes them twenty times slower, and none of it is our code.
# Our accesses to them are still checked, and so are their locks.
UNWATCHED = modernc.org/sqlite/lib modernc.org/libc golang.org/x/crypto/argon2
BUF       = $(GO) tool -modfile=proto/tools/buf.mod buf
NPM_DIR   = test/e2e/npm
TSC       = $(NPM_DIR)/node_modules/.bin/tsc
GOLANGCI ?= $(shell command -v golangci-lint || echo $$($(GO) env GOPATH)/bin/golangci-lint)

# A release: where it will be downloaded from, its minisign public key (a line of base64), and the file of the secret key.
DIST        ?= dist
RELEASE_URL ?=
RELEASE_KEY ?=
SIGNING_KEY ?=

INFO = github.com/service-dev/service/internal/buildinfo
# DEFAULT_BACKEND_URL is a distribution's own backend, which is compiled in; empty means the embedded one.
LDFLAGS = -s -w -X $(INFO).Version=$(VERSION) -X $(INFO).Commit=$(COMMIT) -X $(INFO).BuiltAt=$(BUILT_AT) \
          -X $(INFO).DefaultBackendURL=$(DEFAULT_BACKEND_URL) \
          -X $(INFO).ReleaseURL=$(RELEASE_URL) -X $(INFO).ReleaseKey=$(RELEASE_KEY)
# grpcnotrace leaves out gRPC's event pages, which nobody serves; every start of serviced would initialise them.
BUILD   = CGO_ENABLED=0 $(GO) build -tags grpcnotrace -trimpath -ldflags '$(LDFLAGS)'

PROGRAMS = daemon/serviced ctl/servicectl ctl/service-mcp backend/service-backend \
           examples/apps/hello-glasses examples/apps/desk-go
# serviced contains the shipped adapters. It is one of them under its name, so a link is enough.
ADAPTERS = $(notdir $(wildcard plugins/service-plugin-*))

# The simulator page's program: Go for the browser. Rebuilt only if one of its sources changed.
WASM_DIR     = backend/internal/web/wasm
WASM_SOURCES = go.mod $(shell GOOS=js GOARCH=wasm $(GO) list -deps -f '$(SOURCES)' ./backend/simulator | \
                 sed 's,github.com/service-dev/service/,,g')
SOURCES      = {{with .Module}}{{if .Main}}{{range $$.GoFiles}}{{$$.ImportPath}}/{{.}} {{end}}$\
               {{range $$.EmbedFiles}}{{$$.ImportPath}}/{{.}} {{end}}{{end}}{{end}}

.PHONY: help build wasm run test bare-test check lint generate fuzz bench soak screenshots npm agents-npm agents-test release release-check clean

help: ## print this list
	@echo "usage: make <target>"; echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-13s %s\n", $$1, $$2}' Makefile

build: wasm ## build every program and the examples into bin/, with links and checksums of the adapters
	@mkdir -p "$(BIN)"; n=0; for program in $(PROGRAMS); do \
		n=$$((n + 1)); echo "[$$n/$(words $(PROGRAMS))] $(BIN)/$${program##*/}"; \
		$(BUILD) -o "$(BIN)/" ./$$program || exit 1; \
	done
	@cd "$(BIN)" && for adapter in $(ADAPTERS); do ln -sf serviced "$$adapter"; done && \
	sum=$$(command -v sha256sum || echo shasum -a 256) && $$sum serviced $(ADAPTERS) > plugins.sha256

wasm: $(WASM_DIR)/simulator.wasm.gz $(WASM_DIR)/wasm_exec.js ## build the simulator page's program, which the backend embeds

$(WASM_DIR)/simulator.wasm.gz: $(WASM_SOURCES)
	@tmp=$$(mktemp -d $(WASM_DIR)/.build.XXXXXX) && trap 'rm -rf "$$tmp"' EXIT && echo "build the simulator page's program" && \
	GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='-s -w' -o "$$tmp/wasm" ./backend/simulator && \
	gzip -9 -n -c "$$tmp/wasm" > "$$tmp/gz" && mv "$$tmp/gz" $@

$(WASM_DIR)/wasm_exec.js: $(shell $(GO) env GOROOT)/lib/wasm/wasm_exec.js
	cp $< $@ && touch $@

run: build ## demonstrate the main workflow: link an account, open a live simulator, run an example app (Ctrl-C stops it)
	@$(BIN)/servicectl demo --dir $(RUN_DIR)

test: wasm ## run every test; RACE=1 detects races, FULL=1 repeats more; without a requirement skip (in CI fail)
	@sh $(NPM_DIR)/setup.sh
	SERVICE_TEST_FULL="$(FULL)" $(GO) run ./test/gotest $(if $(RACE),-race $(UNWATCHED:%=-gcflags=%=-race=false)) \
		-count=1 -timeout 45m $(TESTS)

bare-test: wasm ## run the tests that start programs, as on a machine with only Go, make, gcc and git (Debian, as root)
	@test/checks/bare.sh

check: ## vet (Linux, macOS, Windows, WebAssembly), lint, type-check the pages, generated code and go.mod are clean, known vulnerabilities
	$(GO) vet ./...
	$(GO) vet -C packaging/release ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) vet ./...
	GOOS=js GOARCH=wasm $(GO) vet ./backend/simulator ./glasses/...
	@if [ -x "$(GOLANGCI)" ]; then $(GOLANGCI) run ./...; \
	 elif [ -n "$$CI" ]; then echo "golangci-lint is missing"; exit 1; \
	 else echo "SKIPPED: golangci-lint is not installed (go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0)"; fi
	@if [ -x "$(TSC)" ]; then $(TSC) --noEmit -p backend/internal/web/tsconfig.json; \
	 elif [ -n "$$CI" ]; then echo "tsc is missing"; exit 1; \
	 else echo "SKIPPED: tsc is not installed (make npm)"; fi
	$(BUF) lint
	@sh test/checks/clean.sh
	@GO="$(GO)" sh test/checks/vuln.sh

generate: ## regenerate the code of proto/*.proto
	$(BUF) generate

fuzz: ## run every fuzz target for FUZZTIME each: a time (default 5s) or a number of inputs (3000x)
	@sh test/checks/fuzz.sh $(FUZZTIME)

bench: build ## measure speed and memory against a floor, in one table; ONLY=relay measures one step
	$(GO) run ./test/bench -bin $(BIN) $(if $(ONLY),-only $(ONLY))

soak: build ## run for FOR (10m) under kills, full disks and clock jumps, and count losses and leaks; SEED repeats a run
	$(GO) run ./test/soak -bin $(BIN) -for $(FOR) $(if $(SEED),-seed $(SEED)) $(ARGS)

screenshots: build ## update the pictures of README from running programs
	$(GO) run ./test/panels docs/images/panels.png
	SERVICE_SCREENSHOTS=$(CURDIR)/docs/images $(GO) test -count=1 -run 'TestMainJob/embedded/modern' ./test/e2e
	@set -e; tour=$$(mktemp -d); trap 'rm -rf "$$tour"' EXIT; export SERVICE_CONFIG_DIR=$$tour/state; \
	cp docs/images/approve.png docs/images/simulator.png "$$tour"; \
	"$(BIN)/servicectl" session run examples/scenarios/desk.json -- "$(BIN)/desk-go" >"$$tour/session-run.txt"; \
	"$(BIN)/servicectl" daemon stop; \
	$(GO) run ./test/tour "$$tour" docs/images/tour.png
	@set -e; pages=$$(mktemp -d); trap 'rm -rf "$$pages"' EXIT; \
	SERVICE_SCREENSHOTS=$$pages $(GO) test -count=1 -run '^TestPages$$' ./test/e2e; \
	cp "$$pages/page-mcp-access.png" docs/images/access.png; cp "$$pages/page-analytics-dark.png" docs/images/analytics.png; \
	$(GO) run ./test/contactsheet "$$pages" docs/images/pages.png; \
	$(GO) run ./test/contactsheet "$$pages" docs/images/gateway.png gateway gateway-empty credit credit-empty docs-managed-gateway docs-operating-gateway

npm: ## install the MCP and model clients, llama.cpp and the type checker that tests and check use
	@sh $(NPM_DIR)/setup.sh --strict

agents-npm: ## install the coding agents of agents-test (1.5 GB; not with npm ci: some registries lack packages for other systems)
	cd test/agents/npm && npm install --no-save --no-fund --no-audit

agents-test: wasm ## run real coding agents with the tools and a scripted model on loopback
	$(GO) test -tags agents -count=1 -v -timeout 5m ./test/agents

release: ## make the artefacts of VERSION in dist/: the same bytes from the same commit. RELEASE_URL, RELEASE_KEY and SIGNING_KEY are optional
	$(GO) run -C packaging/release . -root "$(CURDIR)" -out "$(abspath $(DIST))" -version "$(VERSION)" -url "$(RELEASE_URL)" \
		-public-key "$(RELEASE_KEY)" -backend "$(DEFAULT_BACKEND_URL)" $(if $(SIGNING_KEY),-key "$(abspath $(SIGNING_KEY))")

release-check: ## make the artefacts and test what is in them; FULL=1 makes all of them twice and takes long
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(GO) build -o "$$tmp/gotest" ./test/gotest && cd packaging/release && \
	SERVICE_TEST_FULL="$(FULL)" "$$tmp/gotest" -count=1 -timeout 60m ./...

clean: ## remove the output of build and run
	rm -rf $(BIN) $(RUN_DIR) $(DIST) $(WASM_DIR)/simulator.wasm.gz $(WASM_DIR)/wasm_exec.js
