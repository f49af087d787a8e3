# Everything a contributor or the CI runs. `make help` lists the targets; CONTRIBUTING.md explains how they fit together.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# The targets use both cores by themselves, and verify's order matters.
.NOTPARALLEL:
.ONESHELL:
MAKEFLAGS += --no-builtin-rules

# Caches live outside the clone: a fresh clone starts warm, and `git clean` costs nothing.
export KRUISEKIT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kruisekit

# What controller-gen makes of the api packages. kubectl's client-side apply stores the whole object in an annotation of
# at most 256 KiB, so no CRD may grow past CRD_MAX_BYTES; lower maxDescLen when one does.
CRD_OPTIONS   ?= crd:crdVersions=v1,generateEmbeddedObjectMeta=true
CRD_MAX_BYTES ?= 204800

# How long each fuzz test runs.
export FUZZTIME ?= 10s

# What bench runs: full, quick, or scenarios by name, as in quick,a,c. Which benchmarks microbench runs.
BENCH             ?= full
export MICROBENCH ?= .

# How often stress runs each level, and which levels.
RUNS   ?= 10
LEVELS ?=

# How long a soak takes.
SOAK ?= 1h

# How long the API server is away in the test of outages, and which revision runs beside this one in that of releases.
OUTAGE   ?= 5m
PREVIOUS ?= $(shell git rev-list -1 --before='1 day ago' HEAD)

# Which versions of Kubernetes to run the tests on.
VERSIONS ?= $(shell sed -n 's/^v\(1\.[0-9]*\).*/\1/p' test/cluster/binaries/kubernetes.versions)

# Flags for the tests, such as TESTFLAGS='-run TestX -v'.
TESTFLAGS ?=

CLUSTER := go run ./test/cluster/cmd/cluster
LEVEL   := hack/level

# What the images of the manager and of the daemon are called in the registry of the real nodes.
IMG ?= kruisekit/kruise-manager:dev
DAEMON_IMG ?= kruisekit/kruise-daemon:dev

##@ Help

.PHONY: help
help: ## List these targets
	@awk -F':.*## ' '/^##@ /{print substr($$0, 5) ":"} /^[a-z0-9-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Look

.PHONY: demo
demo: ## See a rollout in place beside that of a Deployment, in a cluster of its own
	@hack/demo
	exec bin/demo

##@ Write

.PHONY: generate
generate: ## Regenerate deepcopy code, clients, CRDs, RBAC, webhook configurations and the chart from the code
	@tool=$$(hack/tool controller-gen)
	$$tool object:headerFile=hack/boilerplate.go.txt paths=./api/...
	hack/generate-client
	rm -f config/crd/bases/*_*.yaml
	$$tool "$(CRD_OPTIONS)" paths=./api/... output:crd:artifacts:config=config/crd/bases
	$$tool rbac:roleName=kruise-manager paths="./controllers/...;./webhooks/...;./examples/kruise-manager/..." \
		output:rbac:dir=config/rbac
	$$tool rbac:roleName=kruise-daemon paths="./daemon/...;./examples/kruise-daemon/..." output:rbac:dir=config/daemon
# To stdout, for without any webhook it would write no file.
	$$tool webhook paths=./webhooks/... output:webhook:stdout >config/webhook/manifests.yaml
	go test ./config/protection -run '^TestFiles$$' -count=1 -update
	go run ./hack/chart "$$(hack/tool kustomize)"
	large=$$(find config/crd/bases -name '*.yaml' -size +$(CRD_MAX_BYTES)c -printf '%p: %s bytes\n')
	if [[ -n $$large ]]; then
		echo "$$large" >&2
		echo 'above CRD_MAX_BYTES=$(CRD_MAX_BYTES): lower maxDescLen in CRD_OPTIONS' >&2
		exit 1
	fi

# The revision that surface compares with.
BASE ?= HEAD

.PHONY: surface
surface: ## Print how the public API differs from that of BASE (HEAD), for CHANGELOG.md
	@hack/apidiff $(BASE)

.PHONY: fmt
fmt: ## Format all Go code
	@tool=$$(hack/tool golangci-lint)
	$$tool fmt ./...

.PHONY: tools
tools: ## Build the pinned tools into the cache
	@for dir in hack/tools/*/; do hack/tool "$$(basename "$$dir")"; done

.PHONY: clean
clean: ## Remove what builds and tests left in the clone (caches stay)
	@rm -rf bin dist
	find . -type f \( -name '*.test' -o -name '*.out' -o -name '*.prof' \) -not -path './.git/*' -delete

##@ Check

.PHONY: verify
verify: verify-tidy verify-generated verify-config build client packaging lint layers embed-check verify-clean ## Check all that needs no test: tidy, generated, built, linted, layered

.PHONY: verify-tidy verify-generated verify-config
verify-tidy verify-generated verify-config:
	@hack/$@

# In CI nothing may be left over either: not from before, not from the checks above.
.PHONY: verify-clean
verify-clean:
	@if [[ $${CI:-} != true ]]; then exit 0; fi
	if ! git rev-parse --git-dir >/dev/null; then
		echo 'no git repository here: left-overs are not looked for'
		exit 0
	fi
	if [[ -n $$(git status --porcelain) ]]; then
		git status --short
		git --no-pager diff
		echo 'the tree is dirty' >&2
		exit 1
	fi

.PHONY: build
build: ## Compile all packages, examples included
# Not go build, which would link a dozen programs and keep none of them.
	@go list -export -f '{{""}}' ./...

.PHONY: client
client: ## Compile and test the modules of clients and of the plugin with fakes, and test the types beside those of OpenKruise
	@export GOWORK=off
	(cd api/client && go vet -tags envtest ./... && go test ./...)
	(cd test/kruiseapi && go test ./...)
	(cd kubectl-kruise && go vet -tags "envtest simulated" ./... && go test ./...)
	(cd kubectl-kruise/test && go vet -tags simulated ./...)

.PHONY: packaging
packaging: ## Check that the chart has the objects of config/, and what its values do
	@export GOWORK=off
	(cd test/install && go vet ./... && go test ./...)

.PHONY: lint
lint: ## Lint the files of every test level
	@tool=$$(hack/tool golangci-lint)
	$$tool config verify
	GOGC=$${GOGC:-400} $$tool run ./...

.PHONY: layers
layers: ## Check the direction of imports, what public packages export, and the floor of go.mod
	@go run ./hack/layers

.PHONY: embed-check
embed-check: ## Check what an operator takes in that imports one primitive
	@go run ./hack/embed

.PHONY: compat-newest
compat-newest: ## Compile with the libraries of the programs, the newest ones (nightly also runs the unit tests)
	@hack/compat-newest $(TESTFLAGS)

##@ Test

.PHONY: test
test: ## Set up what is missing, run every level of tests, and sum up
	@$(LEVEL) all $(TESTFLAGS)
	export GOWORK=off
	(cd api/client && go test -tags envtest ./...)
	(cd kubectl-kruise && go test -tags "envtest simulated" ./...)

.PHONY: test-unit
test-unit: ## Test what needs no cluster, with the race detector where a package starts goroutines
	@$(LEVEL) unit $(TESTFLAGS)

.PHONY: test-envtest
test-envtest: ## Test against kube-apiserver and etcd (cluster-build first)
	@$(LEVEL) envtest $(TESTFLAGS)

.PHONY: test-simulated
test-simulated: ## Test against simulated nodes (cluster-build first)
	@$(LEVEL) simulated $(TESTFLAGS)

.PHONY: test-e2e
test-e2e: ## Test on real kubelets and containerd (Linux and root; cluster-build first)
	@$(LEVEL) e2e $(TESTFLAGS)

.PHONY: nightly
nightly: ## Run what is too slow for every change: all unit tests with the race detector, those with the newest libraries, the tests of the test cluster, outages, two releases, versions of Kubernetes, the chart, every level RUNS (10) times, each fuzz test
	@$(LEVEL) race $(TESTFLAGS)
	$(LEVEL) nightly $(TESTFLAGS)
	hack/compat-newest -short
	$(MAKE) plugin-lint plugin-test dashboard-test outages releases install-test
	$(MAKE) versions
	cd hack/tools/images
	GOWORK=off go test ./...
	cd ../../..
	hack/stress $(RUNS)
	hack/fuzz

.PHONY: stress
stress: ## Run every level RUNS (10) times on a busy machine, LEVELS="unit envtest" to select
	@hack/stress $(RUNS) $(LEVELS)

.PHONY: soak
soak: ## Change objects of all kinds for SOAK (1h) on real nodes, kill managers and daemons, and report (cluster-build first)
	@KRUISEKIT_REQUIRE_CLUSTER=1 go test -tags e2e ./test/e2e -run '^TestSoak$$' -count=1 -v -timeout 24h -args -soak $(SOAK)

.PHONY: outages
outages: ## Keep the API server away for OUTAGE (5m), partition leaders, shift clocks and expire certificates on real nodes (cluster-build first)
	@KRUISEKIT_REQUIRE_CLUSTER=1 go test -tags e2e ./test/e2e -run '^TestOutages$$' -count=1 -v -timeout 2h -args -outage $(OUTAGE)

.PHONY: releases
releases: ## Run the manager of the revision PREVIOUS (a day old) beside this one on real nodes, with rollouts of all kinds
	@KRUISEKIT_REQUIRE_CLUSTER=1 go test -tags e2e ./test/e2e -run '^TestReleases$$' -count=1 -v -timeout 2h -args -previous $(PREVIOUS)

.PHONY: versions
versions: ## Run the API server level on each of VERSIONS of Kubernetes, and real nodes of the first and the last (cluster-build first)
	@export KRUISEKIT_REQUIRE_CLUSTER=1
	for version in $(VERSIONS); do
		export KRUISEKIT_KUBERNETES=$$version
		echo "##### Kubernetes $$version"
		$(LEVEL) envtest $(TESTFLAGS)
		case $$version in $(firstword $(VERSIONS)) | $(lastword $(VERSIONS))) $(LEVEL) e2e $(TESTFLAGS) ;; esac
	done

.PHONY: install-test
install-test: ## Install the chart on real nodes with images by ko, upgrade, roll back, uninstall (cluster-build first)
	@hack/install-test

# What the test of the dashboard gets, such as DASHBOARDFLAGS='-images ../../../docs/images' to take its pictures again.
DASHBOARDFLAGS ?=

.PHONY: dashboard-test
dashboard-test: ## Follow a rollout of 300 pods on the page of the plugin in Chromium (cluster-build first)
	@cd kubectl-kruise/test
	GOWORK=off KRUISEKIT_REQUIRE_CLUSTER=1 go test -tags simulated ./dashboard -count=1 -v -timeout 20m -args $(DASHBOARDFLAGS)

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (10s)
	@hack/fuzz

.PHONY: bench
bench: ## Measure the manager in a simulated cluster, BENCH=full (80 minutes on 2 cores), quick, or scenarios by name
	@go run ./test/bench -which '$(BENCH)'

.PHONY: microbench
microbench: ## Run the Go benchmarks of the packages, MICROBENCH=regexp to select
	@hack/microbench $(TESTFLAGS)

##@ Plugin

.PHONY: plugin
plugin: ## Build kubectl-kruise for this machine into bin
	@hack/plugin build

.PHONY: plugin-lint
plugin-lint: ## Lint the module of the plugin
	@tool=$$(hack/tool golangci-lint)
	cd kubectl-kruise
	GOWORK=off GOGC=$${GOGC:-400} $$tool run ./...
	cd test
	GOWORK=off GOGC=$${GOGC:-400} $$tool run ./...

.PHONY: plugin-test
plugin-test: plugin ## Roll out, restart, pull and migrate with kubectl-kruise on real nodes (cluster-build first)
	@KRUISEKIT_REQUIRE_CLUSTER=1 go test -tags e2e ./test/e2e -run '^TestPlugin$$' -count=1 -v -parallel 16 -timeout 30m \
		-args -plugin $(CURDIR)/bin/kubectl-kruise

.PHONY: plugin-release
plugin-release: ## Build archives of kubectl-kruise for three systems by two architectures, and the krew manifest, VERSION=v1.2.3
	@hack/plugin release $(VERSION)

##@ Cluster

.PHONY: cluster-build
cluster-build: ## Build the programs of the test cluster into the cache
	@$(CLUSTER) build

.PHONY: cluster-up
cluster-up: ## Start a cluster with real nodes to play with
	@go run ./hack/packages nodes
	$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop it
	@$(CLUSTER) down

##@ Release

# Where release images go: a registry and a path in it, such as registry.example.com/kruisekit.
REGISTRY ?=
VERSION  ?= v0.0.0-dev

.PHONY: images
images: ## Build the images of manager and daemon for amd64 and arm64, and push them below REGISTRY
	@hack/release images $(VERSION) $(REGISTRY)

.PHONY: release
release: ## Make images, chart, manifests, SBOMs, changes and checksums of VERSION in dist
	@hack/release all $(VERSION) $(REGISTRY)

##@ Deploy

.PHONY: image
image: ## Build manager and daemon, and push their images to the registry of the real nodes (cluster-up first)
	@hack/deploy image $(IMG) $(DAEMON_IMG)

.PHONY: deploy
deploy: ## Run manager and daemon on the real nodes
	@hack/deploy up $(IMG) $(DAEMON_IMG)

.PHONY: undeploy
undeploy: ## Remove them, with its CRDs and all of their objects
	@hack/deploy down
