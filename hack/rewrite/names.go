package main

import (
	_ "embed"
	"fmt"
	"strings"
)

const (
	apiModule     = "github.com/openkruise/kruise-api"
	managerModule = "github.com/openkruise/kruise"
	here          = "github.com/kruisekit/kruisekit"
)

// identifiers has the exported identifiers of the API packages, one a line: package and name. The test compares it with
// the packages, and writes it with -update.
//
//go:embed identifiers.txt
var identifiers string

// renames has what has another place or name here.
//
//go:embed renames.txt
var renames string

// name is an identifier of a package, whose path is relative to its module.
type name struct{ pkg, ident string }

// names is what the rewriter knows of both projects.
type names struct {
	exported map[name]bool
	renamed  map[name]name
}

func load() (names, error) {
	n := names{map[name]bool{}, map[name]name{}}
	for _, line := range lines(identifiers) {
		f := strings.Fields(line)
		if len(f) != 2 {
			return n, fmt.Errorf("read identifiers: %q", line)
		}
		n.exported[name{f[0], f[1]}] = true
	}
	for _, line := range lines(renames) {
		f := strings.Fields(line)
		if len(f) != 4 {
			return n, fmt.Errorf("read renames: %q", line)
		}
		n.renamed[name{f[0], f[1]}] = name{f[2], f[3]}
	}
	return n, nil
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// place is where a package of the reference is here.
type place struct {
	// old is the path of the package in the API module.
	old string
	// pkg is the path in this repository; empty for a package of another module, and for one without a counterpart.
	pkg string
	// path is the import path; empty without a counterpart.
	path string
	// hint is what to use instead.
	hint string
}

// placeOf finds the place of an import; ok reports whether the import is one of the reference.
func placeOf(path string) (p place, ok bool) {
	old, is := inModule(path, apiModule)
	if !is {
		if old, is = inModule(path, managerModule); !is {
			return place{}, false
		}
		old = inAPIModule(old)
	}
	p = place{old: old, hint: hints(old)}
	switch {
	case old == "apps/pub" || old == "utils/configuration":
		p.pkg = "api/kruise"
	case old == "apps/v1alpha1", old == "apps/v1beta1", old == "policy/v1alpha1", old == "policy/v1beta1":
		p.pkg = "api/" + old
	case old == "utils/scheme":
		p.path = "sigs.k8s.io/controller-runtime/pkg/scheme"
	case within(old, "client/clientset/versioned"), within(old, "client/informers/externalversions"),
		within(old, "client/listers"):
		p.pkg = "api/" + old
	}
	if p.pkg != "" {
		p.path = here + "/" + p.pkg
	}
	return p, true
}

// inModule returns the path of a package below its module; ok reports whether the package is of the module.
func inModule(path, module string) (below string, ok bool) {
	below, ok = strings.CutPrefix(path, module)
	if !ok || below != "" && below[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(below, "/"), true
}

// inAPIModule returns the path in the module of the API of a package of the module of the manager.
func inAPIModule(path string) string {
	switch {
	case path == "apis":
		return ""
	case strings.HasPrefix(path, "apis/"):
		return strings.TrimPrefix(path, "apis/")
	case strings.HasPrefix(path, "pkg/client/"):
		return strings.TrimPrefix(path, "pkg/")
	case path == "pkg/util/configuration":
		return "utils/configuration"
	}
	return path
}

func within(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// hints is what stands for a package without a counterpart.
func hints(old string) string {
	for root, hint := range map[string]string{
		"apps/defaults":              "call the method Default of the object",
		"pkg/client":                 "make the clients with client/clientset/versioned",
		"pkg/util/expectations":      "see package ledger",
		"pkg/util/history":           "see package revision",
		"pkg/util/inplaceupdate":     "see package inplace",
		"pkg/util/lifecycle":         "see package lifecycle",
		"pkg/util/specifieddelete":   "see package scale, and kruise.SpecifiedDeleteKey",
		"pkg/util/updatesort":        "see package scale",
		"pkg/util/requeueduration":   "see RequeueAfter of workload.Pass",
		"pkg/util/refmanager":        "see workload.Input.Owner",
		"pkg/util/revisionadapter":   "see package revision",
		"pkg/util/podadapter":        "see package driver",
		"pkg/control/sidecarcontrol": "see package sidecar, and the SidecarSet keys of api/kruise",
	} {
		if within(old, root) {
			return hint
		}
	}
	if old == "" {
		return "call AddToScheme of each package of api"
	}
	return ""
}

// methods are those of the types of the reference that the types here lack, and what stands for them.
func methods() map[string]string {
	return map[string]string{
		"GetUnschedulableLastDuration":   "1.9 has GetUnschedulableDuration; read the field UnschedulableDuration",
		"GetUnschedulableDuration":       "read the field UnschedulableDuration",
		"GetRescheduleCriticalDuration":  "read the field RescheduleCriticalSeconds",
		"ShouldReserveUnschedulablePods": "read the field ReserveUnschedulablePods",
		"InitSubsetStatuses":             "1.9 has none",
		"GetSubsetStatus":                "search the field SubsetStatuses",
		"IsEqualPodConditionStatus":      "compare the values",
		"FieldsValidation":               "the webhook of the kind validates",
	}
}
