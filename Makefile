# Everything a contributor or the CI runs. `make help` lists the targets; CONTRIBUTING.md tells how they fit together.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
MAKEFLAGS += --no-builtin-rules

# Caches live outside the clone: a fresh clone starts warm, and `git clean` costs nothing.
export KRUISEKIT_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kruisekit

# What controller-gen makes of the api packages. kubectl's client-side apply stores the whole object in an annotation of
# at most 256 KiB, so no CRD may grow past CRD_MAX_BYTES; lower maxDescLen when one does.
CRD_OPTIONS   ?= crd:crdVersions=v1,generateEmbeddedObjectMeta=true
CRD_MAX_BYTES ?= 204800

.PHONY: help
help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: generate
generate: ## Regenerate deepcopy code and CRDs from the api packages
	@tool=$$(hack/tool controller-gen)
	$$tool object:headerFile=hack/boilerplate.go.txt paths=./api/...
	rm -f config/crd/bases/*_*.yaml
	$$tool "$(CRD_OPTIONS)" paths=./api/... output:crd:artifacts:config=config/crd/bases
# RBAC (paths=./controllers/...;./daemon/...) and webhook manifests (paths=./webhooks/...) join here, each with its own
# output directory under config/.
	large=$$(find config/crd/bases -name '*.yaml' -size +$(CRD_MAX_BYTES)c -printf '%p: %s bytes\n')
	if [[ -n $$large ]]; then
		echo "$$large" >&2
		echo 'above CRD_MAX_BYTES=$(CRD_MAX_BYTES): lower maxDescLen in CRD_OPTIONS' >&2
		exit 1
	fi
