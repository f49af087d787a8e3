package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
)

// report is a text of sections: a title, and indented lines.
type report struct{ strings.Builder }

func (r *report) add(title string, lines ...string) {
	if len(lines) == 0 {
		return
	}
	if r.Len() > 0 {
		r.WriteString("\n")
	}
	r.WriteString(title + "\n")
	for _, line := range lines {
		r.WriteString(strings.TrimRight("  "+line, " ") + "\n")
	}
}

// Check reports on the facts. It sorts what it names, so that equal facts have equal reports.
func Check(f Facts) string {
	var r report
	in, s := recognise(f), settings{}
	r.add("Installed", installed(f, in)...)
	r.add("Attend to this first", urgent(f, in)...)
	taken := in.kind == kindOpenKruise
	if taken {
		s = choose(f, in)
		r.add("Set", sets(f, in, s)...)
		r.add("Kinds in use", inUse(f)...)
		r.add("What will differ for the objects that exist", differs(f, s)...)
	}
	r.add("Commands", commands(f, in, s)...)
	if taken {
		r.add("Way back", back(in)...)
	}
	r.add("Not read", f.Unread...)
	return r.String()
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
	line := "OpenKruise " + in.String()
	if in.exact != "" && in.low == in.high {
		line = "OpenKruise " + in.exact
	}
	line += " by " + in.source
	if f.Manager == nil {
		line += ", whose manager does not run"
	}
	lines = append(lines, line+", namespace "+f.Namespace)
	if h := f.Release; h != nil {
		lines = append(lines, fmt.Sprintf("release %s in namespace %s, %s, chart %s-%s",
			h.Name, h.Namespace, h.Status, h.Chart, h.Version))
	}
	for _, e := range in.evidence {
		lines = append(lines, "evidence: "+e.text+": "+e.String())
	}
	if f.LeaseHolder != "" {
		lines = append(lines, fmt.Sprintf("leader %s, seen %s ago",
			f.LeaseHolder, f.Now.Sub(f.LeaseRenewed).Round(time.Second)))
	}
	return lines
}

// urgent is what makes a takeover fail, or must be known before.
func urgent(f Facts, in installation) []string {
	var lines []string
	if v, err := version.ParseGeneric(f.Kubernetes); err == nil && v.LessThan(version.MajorMinor(1, 30)) {
		lines = append(lines, "Kubernetes is older than 1.30, which the manifests need: docs/install.md")
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
			"kruisekit starts, which looks at the Lease alone; then delete the ConfigMap")
	}
	if f.Release != nil && in.kind == kindOpenKruise {
		lines = append(lines, "never run helm uninstall: it deletes the CRDs, all objects of the kinds and the pods "+
			"of their workloads")
	}
	for _, d := range f.Definitions {
		if d.ReadError != "" {
			lines = append(lines, fmt.Sprintf("%s cannot be read: %s", d.Name, d.ReadError))
		}
		if d.Untrusted {
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
		for _, e := range c.Webhooks {
			served = served || e.Name == "mimagepulljob-v1beta1.kb.io"
			to := e.ClientConfig.Service
			old = old || to != nil && strings.Contains(ptr.Deref(to.Path, ""), "-v1alpha1-imagepulljob")
			if len(e.ClientConfig.CABundle) == 0 && !strings.HasPrefix(c.Name, "kruise-pods-") {
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

// sets is what to give to kruisekit, so that it does what the installation does.
func sets(f Facts, in installation, s settings) []string {
	lines := []string{"featureGates: " + cmp.Or(s.gates, `""`)}
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
		if c.Annotations["template"] != "" {
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
