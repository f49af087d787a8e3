package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// module is the path that all packages of the house start with.
const module = "github.com/kruisekit/kruisekit"

// A layer imports the ones below it, never the other way round.
type layer int

const (
	types      layer = iota // L0: the kinds
	primitives              // L1: pure plans
	writers                 // L2, public: for controllers that write, on a client alone
	shared                  // L2: what the reconcilers share, and the generated manifests
	units                   // L3: one reconciler, webhook or part of the daemon each
	parents                 // L4: the lists of them
	examples                // L5: thin mains
	tooling                 // test/ and hack/: outside of the library, import anything
	unknown                 // not in the table
)

// place is where a package belongs. Packages of one unit may import each other.
type place struct {
	layer layer
	unit  string
}

// below lists the packages that decide, and which others of them each may import. An entry more is a decision: the
// fewer arrows, the less an embedder takes in. Those at the top level are public. Those that serve one kind stand
// next to its reconciler, and those that serve its webhooks or the daemon as well are internal.
func below() map[string][]string {
	base := []string{"note", "write", "revision", "lifecycle"}
	return map[string][]string{
		"note":              nil,
		"write":             nil,
		"revision":          {"note", "write"},
		"lifecycle":         {"note", "write"},
		"inplace":           base,
		"launch":            base,
		"workload/eligible": {"note"},
		"scale":             base,
		"sidecar":           append(slices.Clone(base), "inplace", "scale", "sidecar/internal/sizing"),
		"spread":            append(slices.Clone(base), "scale", "workload/eligible"),
		"workload":          append(slices.Clone(base), "inplace", "scale"),
		// the pods of built-in controllers
		"workload/native": append(slices.Clone(base), "inplace", "scale", "workload"),
		// a pod whose update in place is under way is unavailable
		"pub":        append(slices.Clone(base), "inplace", "scale"),
		"protection": base,
		"imagepull":  {"note", "revision", "lifecycle"},
		// it reports the hashes that inplace waits for
		"containerrestart": {"note", "write", "revision", "lifecycle", "inplace"},

		"internal/distribution":   nil,
		"internal/failure":        nil,
		"internal/ordinals":       nil,
		"internal/passes":         nil,
		"internal/podprobe":       {"note", "write", "lifecycle"},
		"internal/podstate":       {"note", "write", "internal/ordinals"},
		"internal/schedule":       {"note", "internal/validation"},
		"internal/sidecarsets":    {"scale", "sidecar", "internal/validation"},
		"internal/validation":     {"imagepull", "scale", "spread", "internal/failure", "internal/ordinals"},
		"sidecar/internal/sizing": {"note"},
		"internal/workloadspread/subset": append(slices.Clone(base),
			"workload/eligible", "inplace", "scale", "pub", "internal/validation"),
		"controllers/daemonset/internal/placement": append(slices.Clone(base), "workload/eligible", "scale"),
		"controllers/imagepulljob/internal/order":  {"lifecycle", "scale"},
		"controllers/sidecarset/internal/history":  {"note", "write", "revision"},
		"controllers/sidecarset/rollout": append(slices.Clone(base),
			"inplace", "scale", "sidecar", "internal/passes"),
		"controllers/sidecarterminator/finish": {"note", "write", "sidecar"},
	}
}

// onClients are the packages of the layer writers.
func onClients() []string { return []string{"driver", "ledger"} }

// podOnly are the primitives that any controller of pods can use: of the kinds they may know api/kruise, the keys of
// pods.
func podOnly() []string {
	return []string{
		"note", "write", "revision", "lifecycle", "inplace", "launch", "scale",
		"workload", "workload/eligible", "workload/native",
		"internal/ordinals", "controllers/daemonset/internal/placement",
	}
}

// restricted are foreign packages, by prefix, with the only places that may import them, tests included.
func restricted() map[string][]string {
	return map[string][]string{
		"k8s.io/kubernetes":      nil,
		"google.golang.org/grpc": {"daemon/cri", "test", "hack"},
		"k8s.io/cri-api":         {"daemon/cri", "test", "hack"},
		"k8s.io/cri-client":      {"daemon/cri", "test", "hack"},
	}
}

// served is what an API server needs to hold both versions of a kind. Tests of units run it with their own.
func served() []string {
	return []string{"webhooks/conversion"}
}

// between are what several programs among the examples share.
func between() []string {
	return []string{"examples/reference"}
}

// impure must not come into L0 and L1 even through others: an importer of a primitive compiles none of these.
func impure() []string {
	return []string{
		"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/component-base", "google.golang.org/grpc",
		"github.com/prometheus", "go.opentelemetry.io", "go.uber.org/zap",
	}
}

// vague are the names that say nothing about what is inside.
func vague() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "manager", "pkg", "misc", "lib", "core"}
}

// floor is what the go.mod asks of embedders at most, as prefixes of versions.
func floor() map[string]string {
	return map[string]string{
		"k8s.io/api":                     "v0.34.",
		"k8s.io/apimachinery":            "v0.34.",
		"k8s.io/client-go":               "v0.34.",
		"k8s.io/apiextensions-apiserver": "v0.34.",
		"k8s.io/component-base":          "v0.34.",
		"k8s.io/component-helpers":       "v0.34.",
		"k8s.io/cri-api":                 "v0.34.",
		"sigs.k8s.io/controller-runtime": "v0.22.",
		// What cri-api asks for.
		"google.golang.org/grpc": "v1.72.",
	}
}

// goFloor is the Go version that the go.mod asks for, without the patch.
const goFloor = "1.24"

// testOnly reports whether a package helps tests, as net/http/httptest does: the last element of its path ends in test.
// Such a package is judged like a test, and only tests import it.
func testOnly(path string) bool {
	return strings.HasSuffix(path, "test") && placeOf(path).layer != tooling
}

// placeOf finds the place of a path relative to the module's root.
func placeOf(path string) place {
	// The longest first: a package below another one is a unit of its own.
	longest := func(a, b string) int { return cmp.Compare(len(b), len(a)) }
	if unit := within(path, slices.SortedFunc(maps.Keys(below()), longest)); unit != "" {
		return place{primitives, unit}
	}
	parts := strings.SplitN(path, "/", 3)
	first := parts[0]
	switch first {
	case "", "api":
		return place{types, "api"}
	case "internal", "config":
		return place{shared, first}
	case "controllers", "webhooks", "daemon":
		if len(parts) == 1 {
			return place{parents, first}
		}
		return place{units, first + "/" + parts[1]}
	case "examples":
		return place{examples, strings.Join(parts[:min(len(parts), 2)], "/")}
	case "test", "hack":
		return place{tooling, first}
	}
	if slices.Contains(onClients(), first) {
		return place{writers, first}
	}
	return place{unknown, first}
}
