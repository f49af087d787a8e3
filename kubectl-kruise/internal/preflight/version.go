package preflight

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// bounds of the minor version of the reference, 1.5 to 1.9.
type bounds struct{ low, high int }

const oldest, newest = 5, 9

// evidence is a fact that tells versions apart.
type evidence struct {
	text string
	bounds
}

func (b bounds) String() string {
	switch {
	case b.low > b.high:
		return "of several versions"
	case b.low == b.high:
		return fmt.Sprintf("1.%d", b.low)
	case b.high == newest:
		return fmt.Sprintf("1.%d or newer", b.low)
	}
	return fmt.Sprintf("1.%d to 1.%d", b.low, b.high)
}

// installation is what the facts say together.
type installation struct {
	bounds
	// kind is none, kruisekit or OpenKruise.
	kind     string
	source   string
	exact    string
	evidence []evidence
}

const (
	kindNone       = "none"
	kindKruisekit  = "kruisekit"
	kindOpenKruise = "OpenKruise"
)

var release = regexp.MustCompile(`v?1\.(\d+)\.\d+`)

// minorOf returns the minor version whose code a release has; -1 for no release.
func minorOf(text string) int {
	m := release.FindStringSubmatch(text)
	switch {
	case m == nil:
		return -1
	case strings.TrimPrefix(text, "v") == "1.7.5": // the same code as 1.8.3
		return 8
	}
	minor, _ := strconv.Atoi(m[1])
	return minor
}

// recognise says which version is installed. The image comes first, and may be renamed or a digest.
func recognise(f Facts) installation {
	in := installation{bounds: bounds{oldest, newest}, kind: kindNone}
	if f.Manager == nil && len(f.Definitions) == 0 {
		return in
	}
	in.kind = kindOpenKruise
	if ours(f) {
		in.kind = kindKruisekit
		return in
	}
	in.source = sourceOf(f)
	add := func(text string, low, high int) { in.evidence = append(in.evidence, evidence{text, bounds{low, high}}) }
	if f.Manager != nil {
		tag := tagOf(f.Manager.Image)
		if minor := minorOf(tag); minor >= 0 {
			in.exact = strings.TrimPrefix(tag, "v")
			add("image "+f.Manager.Image, minor, minor)
		}
	}
	if f.Release != nil {
		if minor := minorOf(f.Release.Version); minor >= 0 {
			add("chart "+f.Release.Chart+"-"+f.Release.Version, minor, minor)
		}
	}
	definitions(f, add)
	in.webhooks(f, add)
	if slices.Contains(f.Roles, "aggregate-kruise-view") {
		add("ClusterRole aggregate-kruise-view", 8, newest)
	}
	if slices.Contains(f.Roles, "kruise-certs-role") {
		add("ClusterRole kruise-certs-role", 7, newest)
	}
	for _, e := range in.evidence {
		in.low, in.high = max(in.low, e.low), min(in.high, e.high)
	}
	return in
}

// definitions dates the CRDs: by their generator, and by the versions that they serve.
func definitions(f Facts, add func(string, int, int)) {
	for _, d := range f.Definitions {
		switch d.Name {
		case "clonesets.apps.kruise.io":
			chart := map[string]bounds{
				"v0.7.0": {5, 5}, "v0.9.0": {5, 6}, "v0.11.0": {6, 6}, "v0.14.0": {6, 8}, "v0.17.3": {9, newest},
			}
			if b, ok := chart[d.Generator]; ok {
				add("CRD clonesets by controller-gen "+d.Generator, b.low, b.high)
			}
		case "daemonsets.apps.kruise.io":
			if slices.Contains(d.Served, "v1beta1") {
				add("CRD daemonsets serves v1beta1", 9, newest)
			} else {
				add("CRD daemonsets serves v1alpha1 alone", oldest, 8)
			}
		}
	}
}

// webhooks dates the entries. The reference removes those of disabled features, so that a missing one tells nothing.
func (in *installation) webhooks(f Facts, add func(string, int, int)) {
	for _, c := range f.Webhooks {
		for _, e := range c.Webhooks {
			switch e.Name {
			case "vservice.kb.io":
				add("entry "+e.Name, 6, newest)
			case "vephemeraljobs.kb.io":
				add("entry "+e.Name, 7, newest)
			case "mimagepulljob-v1beta1.kb.io":
				add("entry "+e.Name, 9, newest)
			case "mimagepulljob.kb.io":
				if !strings.Contains(in.exact, "alpha") { // which have the entries of 1.8
					add("entry "+e.Name, oldest, 8)
				}
			}
		}
	}
}

// ours reports whether kruisekit is installed: its image has the program as its entry point, where the reference has a
// command. Without a manager its CRDs tell: all versions of kinds with two are served.
func ours(f Facts) bool {
	if f.Manager != nil {
		return len(f.Manager.Command) == 0 && !strings.Contains(f.Manager.Image, "openkruise/")
	}
	return slices.ContainsFunc(f.Definitions, func(d Definition) bool {
		return d.Name == "clonesets.apps.kruise.io" && slices.Contains(d.Served, "v1beta1")
	})
}

func sourceOf(f Facts) string {
	switch {
	case f.Release != nil:
		return "Helm"
	case f.NamespaceLabel != nil && *f.NamespaceLabel == "openkruise":
		return "manifests of the chart"
	}
	return "kustomize"
}

// tagOf is empty for a digest.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[i+1:]
	}
	return ""
}
