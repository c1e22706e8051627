# Needs Go, git and make; a Postgres with pgvector is brought by tools/localpg.
# PG=16 or PG=18 selects its major version, RACE=1 turns the race detector on.

REVISION   ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# The version comes from git describe; Go's own stamp fails in a checkout that belongs to another user.
GO_BUILD   := go build -buildvcs=false -trimpath
LOCALPG    := $(CURDIR)/.local/bin/localpg
PGVERSION   = $(if $(PG),--version $(PG))
TEST_FLAGS ?= $(if $(RACE),-race) -timeout 20m
BENCH_FLAGS ?=
FUZZTIME    ?= 10s

LINT_VERSION := v2.15.0
LINT         := .local/bin/golangci-lint-$(LINT_VERSION)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test test-packages integration e2e bench scale schemathesis fuzz vulncheck generate verify verify-generated lint build \
  clean-data localpg

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: build localpg ## bring a Postgres, migrate and serve on 127.0.0.1:8080
	@$(LOCALPG) exec --name run $(PGVERSION) -- bin/pgrecall serve --migrate

test: test-packages integration ## run all tests: those of the packages, then the integration suite

test-packages: localpg ## run the tests of the packages on a Postgres that is brought
	$(LOCALPG) exec --name test $(PGVERSION) -- go test $(TEST_FLAGS) $$(go list ./... | grep -v /integration$$)

integration: ## run the suite against Postgres in a container (skipped without Docker, unless CI=true)
	go test $(TEST_FLAGS) ./integration/...

e2e: build localpg e2e/node_modules/.package-lock.json ## drive the server with the official JavaScript client
	cd e2e && PGRECALL_BINARY=$(CURDIR)/bin/pgrecall $(LOCALPG) exec --name e2e $(PGVERSION) -- node --test

e2e/node_modules/.package-lock.json: e2e/package.json e2e/package-lock.json
	cd e2e && npm ci --no-audit --no-fund
	@touch $@

bench: build localpg ## measure each operation beside its bare SQL; BENCH_FLAGS="--json" and others
	$(LOCALPG) exec --name bench $(PGVERSION) -- bin/pgrecall bench $(BENCH_FLAGS)

# The default sizes of these tests are small, so that all tests take minutes.
scale: localpg ## search beside a huge user and in a graph of 100,000 vectors
	$(LOCALPG) exec --name test $(PGVERSION) -- sh -ec 'for n in 20000 60000; do \
	  go test -timeout 20m -run "^TestASmallUserBesideAHugeOneGetsExactlyTopK$$" ./recall -args -huge-user $$n; done; \
	  go test -timeout 20m -run "^TestTheGraphFindsWhatIsNearest$$" ./recall -args \
	    -graph-size 100000 -graph-width 200 -graph-asked 200'

schemathesis: build localpg ## send requests made from openapi.yaml to the server (needs python3 with pip)
	$(LOCALPG) exec --name schemathesis $(PGVERSION) -- tools/schemathesis/run

fuzz: localpg ## run each fuzzer for FUZZTIME
	@set -e; for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
	  for name in $$(grep -ho '^func Fuzz[A-Za-z]*' $$package/*_test.go | cut -d ' ' -f 2); do \
	    $(LOCALPG) exec --name test $(PGVERSION) -- go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

vulncheck: ## look for known vulnerabilities of the modules that the code reaches
	go run ./tools/vulncheck

build: ## build the static binary bin/pgrecall
	@CGO_ENABLED=0 $(GO_BUILD) -ldflags "-s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)" -o bin/pgrecall ./cmd/pgrecall

localpg:
	@$(GO_BUILD) -o $(LOCALPG) ./tools/localpg

generate: ## write everything that is generated: dbgen/ by sqlc, the rest by go generate
	go run ./tools/sqlc generate
	go generate ./...

verify: verify-generated ## check what is generated, the OpenAPI document, go.mod and the formatting
	go run ./tools/sqlc diff
	go test -run '^TestTheDocument' ./server
	go mod tidy -diff
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$files" ]; then printf 'not formatted:\n%s\n' "$$files"; exit 1; fi

# go generate in a copy, so that a check changes nothing here.
verify-generated:
	@rm -rf .local/verify && mkdir -p .local/verify
	@git ls-files -z -co --exclude-standard | tar --null -T - -cf - | tar -xf - -C .local/verify
	@cd .local/verify && git init -q . && git add -A && go generate ./... && git add -AN && \
	git --no-pager diff --exit-code || { echo 'generated files differ from the above: run make generate'; exit 1; }
	@rm -rf .local/verify

lint: $(LINT) ## run golangci-lint
	$(LINT) run

# Built from source, which takes minutes once: the prebuilt ones may be older than the language version of go.mod.
$(LINT):
	@mkdir -p .local/bin/build
	GOBIN=$(CURDIR)/.local/bin/build go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	@mv .local/bin/build/golangci-lint $@

clean-data: localpg ## remove the databases kept in .local, after asking
	@$(LOCALPG) clean $(if $(YES),--yes)
