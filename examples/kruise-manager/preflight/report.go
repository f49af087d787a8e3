package preflight

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what the check prints.
type Report struct{ sections []section }

type section struct {
	title string
	lines []string
}

// String returns the text of the report.
func (r Report) String() string {
	var text strings.Builder
	for i, s := range r.sections {
		if i > 0 {
			text.WriteString("\n")
		}
		text.WriteString(s.title + "\n")
		for _, line := range s.lines {
			text.WriteString(strings.TrimRight("  "+line, " ") + "\n")
		}
	}
	return text.String()
}

func (r *Report) add(title string, lines ...string) {
	if len(lines) > 0 {
		r.sections = append(r.sections, section{title, lines})
	}
}

// Check reports on the facts. It sorts what it names, so that equal facts have equal reports.
func Check(f Facts) Report {
	var r Report
	in := recognise(f)
	r.add("Installed", installed(f, in)...)
	r.add("Attend to this first", urgent(f, in)...)
	if in.kind != kindOpenKruise {
		r.add("Commands", commands(f, in, settings{})...)
		r.add("Not read", f.Unread...)
		return r
	}
	s := choose(f, in)
	r.add("Set", sets(f, in, s)...)
	r.add("Kinds in use", inUse(f)...)
	r.add("What will differ for the objects that exist", differs(f, s)...)
	r.add("Commands", commands(f, in, s)...)
	r.add("Way back", back(in)...)
	r.add("Not read", f.Unread...)
	return r
}

func installed(f Facts, in installation) []string {
	lines := []string{"Kubernetes " + f.Kubernetes}
	switch in.kind {
	case kindNone:
		return append(lines, "neither OpenKruise nor kruisekit")
	case kindKruisekit:
		if f.Manager == nil {
			return append(lines, "CRDs of kruisekit, whose manager does not run")
		}
		return append(lines, "kruisekit, image "+f.Manager.Image)
	}
	version := "OpenKruise " + in.String()
	if in.exact != "" && in.low == in.high {
		version = "OpenKruise " + in.exact
	}
	line := version + " by " + in.source
	if f.Manager == nil {
		line += ", whose manager does not run"
	}
	lines = append(lines, line+", namespace "+f.Namespace)
	if h := f.Release; h != nil {
		lines = append(lines, fmt.Sprintf("release %s in namespace %s, %s, chart "+
			"%s-%s", h.Name, h.Namespace, h.Status, h.Chart, h.Version))
	}
	for _, e := range in.evidence {
		lines = append(lines, "evidence: "+e.text+": "+e.String())
	}
	if f.LeaseHolder != "" {
		lines = append(lines, fmt.Sprintf("leader %s, seen %s "+
			"ago", f.LeaseHolder, f.Now.Sub(f.LeaseRenewed).Round(time.Second)))
	}
	return lines
}

// urgent is what makes a takeover fail, or must be known before.
func urgent(f Facts, in installation) []string {
	var lines []string
	if m := minorOf(f.Kubernetes); m >= 0 && m < 30 {
		lines = append(lines, "Kubernetes is older than 1.30, which the manifests need: docs/operations.md")
	}
	if in.kind == kindOpenKruise && in.low > in.high {
		lines = append(lines, "the evidence is of several versions: an upgrade has stopped half-way, or CRDs and "+
			"manager were installed apart")
	}
	if in.exact == "1.7.5" {
		lines = append(lines, "image 1.7.5 has the code of 1.8.3: with the CRDs of its chart, fields of 1.8 were "+
			"pruned from objects")
	}
	if f.LockConfigMap {
		lines = append(lines, "the lock ConfigMap kruise-manager of 1.5.0 or older exists: stop that manager before "+
			"kruisekit starts, "+
			"which looks at the Lease alone; then delete the ConfigMap")
	}
	if f.Release != nil && in.kind == kindOpenKruise {
		lines = append(lines, "never run helm uninstall: it deletes the CRDs, all objects of the kinds and the pods "+
			"of their workloads")
	}
	for _, d := range f.Definitions {
		if d.ReadError != "" {
			lines = append(lines, fmt.Sprintf("%s cannot be read: %s", d.Name, d.ReadError))
		}
		if d.Converted && !d.Trusted {
			lines = append(lines, d.Name+" has a conversion webhook without a CA: reads of one version fail")
		}
	}
	return append(lines, broken(f)...)
}

// broken are entries that the running manager does not serve.
func broken(f Facts) []string {
	served, old := false, false
	var lines []string
	for _, c := range f.Webhooks {
		for _, e := range c.Entries {
			served = served || e.Name == "mimagepulljob-v1beta1.kb.io"
			old = old || strings.Contains(e.Path, "-v1alpha1-imagepulljob")
			if !e.Trusted && !strings.HasPrefix(c.Name, "kruise-pods-") {
				lines = append(lines, fmt.Sprintf("entry %s of %s has no CA: calls fail", e.Name, c.Name))
			}
		}
	}
	if f.Release != nil && strings.Contains(f.Release.Version, "-alpha") && (old || !served) {
		lines = append(lines, "the chart "+f.Release.Version+" names paths that its manager does not serve: "+
			"validation is inactive")
	}
	return lines
}

// minorOf returns -1 for what is no version.
func minorOf(version string) int {
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &minor); err != nil || major != 1 {
		return -1
	}
	return minor
}

// sets is what to give to kruisekit, so that it does what the installation does.
func sets(f Facts, in installation, s settings) []string {
	lines := []string{"featureGates: " + s.gates}
	if s.gates == "" {
		lines[0] = "featureGates: \"\""
	}
	for _, c := range s.changed {
		lines = append(lines, "changed default: "+c)
	}
	if f.Namespace != "kruise-system" {
		lines = append(lines, "installation.namespace: "+f.Namespace)
	}
	if f.Manager != nil {
		for _, name := range []string{
			"pub-exempt-users", "ws-enabled-versioned-status", "cloneset-scaling-exclude-preparing-delete",
		} {
			if v, found := flagOf(f.Manager.Args, name); found {
				lines = append(lines, fmt.Sprintf("manager.extraArgs: --%s=%s", name, v))
			}
		}
	}
	for _, n := range s.notes {
		lines = append(lines, "flag of the manager: "+n)
	}
	if in.low < 9 {
		lines = append(lines, "nothing for the storage: objects stay stored as v1alpha1 until kruise-manager migrate-storage")
	}
	for _, c := range f.Webhooks {
		if c.Template {
			lines = append(lines, "the annotation template of "+c.Name+" has no effect: changes of the configuration "+
				"itself stay")
		}
	}
	if !f.Certificates {
		lines = append(lines, "no Secret kruise-webhook-certs: kruisekit creates one")
	}
	return lines
}

func inUse(f Facts) []string {
	counts := map[string]int{}
	for _, o := range f.Objects {
		counts[o.GetKind()]++
	}
	var lines []string
	for kind, n := range counts {
		lines = append(lines, fmt.Sprintf("%-26s %5d", kind, n))
	}
	slices.Sort(lines)
	for _, d := range f.Definitions {
		if len(d.StoredVersions) > 1 {
			lines = append(lines, fmt.Sprintf("stored versions of %s: %s", d.Name, strings.Join(d.StoredVersions, ", ")))
		}
	}
	return lines
}

// named is how many objects a line of differences names.
const named = 5

func differs(f Facts, s settings) []string {
	c := situation{f, s.on}
	var lines []string
	for _, d := range differences() {
		var concerned []string
		for _, u := range f.Objects {
			if o := (object{u}); slices.Contains(d.kinds, o.GetKind()) && d.concerns(o, c) {
				concerned = append(concerned, o.GetKind()+" "+o.String())
			}
		}
		if len(concerned) == 0 {
			continue
		}
		slices.Sort(concerned)
		more := ""
		if len(concerned) > named {
			more = fmt.Sprintf(" and %d more", len(concerned)-named)
			concerned = concerned[:named]
		}
		lines = append(lines, "- "+d.text, "  "+strings.Join(concerned, ", ")+more, "  "+d.page)
	}
	return lines
}
