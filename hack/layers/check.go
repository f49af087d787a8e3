package main

import (
	"fmt"
	"slices"
	"strings"
)

// checkPackage returns what is wrong with a package of the house.
func checkPackage(p listed) []string {
	path := relative(p.ImportPath)
	from := placeOf(path)
	if from.layer == unknown {
		return []string{fmt.Sprintf("%s: has no layer, see hack/layers/table.go", path)}
	}
	var findings []string
	find := func(format string, args ...any) {
		findings = append(findings, orRoot(path)+": "+fmt.Sprintf(format, args...))
	}
	if p.Doc == "" && len(p.GoFiles) > 0 {
		find("has no package comment")
	}
	for _, part := range append(strings.Split(path, "/"), p.Name) {
		if slices.Contains(vague(), part) {
			find("the name %q says nothing", part)
		}
	}
	inTests := slices.Concat(p.TestImports, p.XTestImports)
	if testOnly(path) {
		inTests = append(inTests, p.Imports...)
	} else {
		for _, i := range p.Imports {
			if why := forbidden(path, i); why != "" {
				find("imports %s: %s", i, why)
			}
		}
	}
	for _, i := range inTests {
		if why := forbiddenInTest(path, i); why != "" {
			find("a test imports %s: %s", i, why)
		}
	}
	if from.layer <= primitives && !testOnly(path) {
		for _, d := range p.Deps {
			if prefix := within(d, impure()); prefix != "" {
				find("depends on %s, which a user of a primitive must not get", prefix)
			}
		}
	}
	return findings
}

// forbidden says why the package at path must not import another, or nothing.
func forbidden(path, imported string) string {
	if !isOwn(imported) {
		return forbiddenForeign(path, imported)
	}
	target := relative(imported)
	from, to := placeOf(path), placeOf(target)
	switch {
	case from.layer == tooling:
		return ""
	case to.layer == tooling:
		return "no part of the library imports test/ or hack/"
	case testOnly(target):
		return "it is made for tests"
	case to.layer > from.layer:
		return "arrows point down only"
	case from.layer == examples && within(target, []string{"internal"}) != "":
		return "an example uses what an embedder can import"
	case slices.Contains(podOnly(), from.unit) && to.layer == types && within(target, []string{"api/kruise"}) == "":
		return from.unit + " works on pods and does not know the kinds"
	case from.layer == to.layer && from.unit != to.unit && !belowOf(from, to):
		return "siblings do not import each other"
	}
	return ""
}

// belowOf reports whether a unit stands below another of its layer.
func belowOf(from, to place) bool {
	if from.layer == primitives {
		return slices.Contains(below()[from.unit], to.unit)
	}
	if from.layer == examples {
		return slices.Contains(between(), to.unit)
	}
	// What runs the passes of a workload reads its own writes.
	if from.unit == "driver" {
		return to.unit == "ledger"
	}
	// The webhooks of single kinds are rows for one machinery.
	if strings.HasPrefix(from.unit, "webhooks/") && to.unit == "webhooks/kinds" {
		return true
	}
	// The parts of the daemon speak to the container runtime through one of them, and share what is internal to the
	// daemon.
	return strings.HasPrefix(from.unit, "daemon/") &&
		(to.unit == "daemon/cri" || to.unit == "daemon/internal" && from.unit != "daemon/cri")
}

// forbiddenInTest is forbidden for the tests of a package: they may also use test/, packages made for
// tests, and everything up to internal. Those of a unit may serve what an API server needs.
func forbiddenInTest(path, imported string) string {
	if isOwn(imported) {
		target := relative(imported)
		if to := placeOf(target); to.layer == tooling || to.layer <= shared || testOnly(target) {
			return ""
		}
		if placeOf(path).layer == units && slices.Contains(served(), target) {
			return ""
		}
	}
	return forbidden(path, imported)
}

func forbiddenForeign(path, imported string) string {
	for prefix, places := range restricted() {
		if within(imported, []string{prefix}) == "" || within(path, places) != "" {
			continue
		}
		if len(places) == 0 {
			return "nobody imports " + prefix
		}
		return "only " + places[0] + " imports " + prefix
	}
	return ""
}

// checkModule returns what is wrong with the go.mod.
func checkModule(m goMod) []string {
	var findings []string
	for _, r := range m.Replace {
		findings = append(findings, fmt.Sprintf("go.mod: replaces %s, which an embedder would have to repeat", r.Old.Path))
	}
	if m.Go != goFloor && !strings.HasPrefix(m.Go, goFloor+".") {
		findings = append(findings, fmt.Sprintf("go.mod: asks for go %s, the floor is %s", m.Go, goFloor))
	}
	for _, r := range m.Require {
		if want, ok := floor()[r.Path]; ok && !strings.HasPrefix(r.Version, want) {
			findings = append(findings, fmt.Sprintf("go.mod: requires %s %s, the floor is %sx", r.Path, r.Version, want))
		}
		if r.Path == "k8s.io/kubernetes" {
			findings = append(findings, "go.mod: requires k8s.io/kubernetes")
		}
	}
	return findings
}

// within returns the prefix that a path equals or lies under, or nothing.
func within(path string, prefixes []string) string {
	for _, p := range prefixes {
		if path == p || strings.HasPrefix(path, p+"/") {
			return p
		}
	}
	return ""
}

func isOwn(path string) bool {
	return within(path, []string{module}) != ""
}

func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func orRoot(path string) string {
	if path == "" {
		return "."
	}
	return path
}
