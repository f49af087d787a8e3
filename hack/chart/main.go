// Command chart generates the templates of charts/kruisekit from config/, so that a Helm release and a kustomization
// have the same objects. What a value changes is listed here; all else is in config/ alone.
//
//	go run ./hack/chart KUSTOMIZE
//
// KUSTOMIZE is the path of kustomize. templates/_helpers.tpl, NOTES.txt and the values are written by hand.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	templates = "charts/kruisekit/templates"
	generated = "{{/* Generated from config/ by hack/chart: change it there. */}}\n"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart KUSTOMIZE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// source is a kustomization, and the template that its objects become.
type source struct {
	dir, template string
	// when is the condition of all objects.
	when string
}

// extras are the kustomizations next to config/base.
func extras() []source {
	return []source{
		{dir: "config/roles", template: "roles.yaml", when: ".Values.aggregatedRoles.enabled"},
		{dir: "config/pulljobs", template: "pulljobs.yaml", when: `include "kruisekit.pullJobs" .`},
		{
			dir: "config/resourcedistribution", template: "resourcedistribution.yaml",
			when: gate("ResourceDistributionGate"),
		},
		{dir: "config/native", template: "native.yaml", when: gate("NativeRollouts")},
		{
			dir: "config/native/hold", template: "hold.yaml", when: "and (" + gate("NativeRollouts") + ") " +
				`(.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")`,
		},
		{
			dir: "config/protection/instances", template: "instances.yaml",
			when: gate("DeletionProtectionForCRDCascadingGate"),
		},
	}
}

// gate is the condition that a feature gate is on.
func gate(name string) string {
	return fmt.Sprintf(`eq (include "kruisekit.gate" (list . %q)) "true"`, name)
}

func run(kustomize string) error {
	old, err := filepath.Glob(filepath.Join(templates, "*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	files := map[string]*strings.Builder{}
	add := func(template, text string) {
		if files[template] == nil {
			files[template] = &strings.Builder{}
			files[template].WriteString(generated)
		}
		files[template].WriteString(text)
	}
	if err := read(kustomize, "config/base", placeOf, add); err != nil {
		return err
	}
	// It is all of config/base, too.
	if err := read(kustomize, "config/metrics", func(o object) source {
		if !strings.HasPrefix(o.name(), "kruise-metrics") {
			return source{}
		}
		return source{template: "metrics.yaml", when: ".Values.metrics.secure"}
	}, add); err != nil {
		return err
	}
	if err := read(kustomize, "config/monitoring", monitoring, add); err != nil {
		return err
	}
	for _, s := range extras() {
		if err := read(kustomize, s.dir, func(object) source { return s }, add); err != nil {
			return err
		}
	}
	for template, text := range files {
		if err := os.WriteFile(filepath.Join(templates, template), []byte(text.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// read adds the templates of a kustomization. Objects whose place is empty are left out.
func read(kustomize, dir string, place func(object) source, add func(template, text string)) error {
	objects, err := build(kustomize, dir)
	if err != nil {
		return err
	}
	for _, o := range objects {
		p := place(o)
		if p.template == "" {
			continue
		}
		text, err := render(o)
		if err != nil {
			return fmt.Errorf("template of %s: %w", o, err)
		}
		add(p.template, wrap(p.when, text))
	}
	return nil
}

func wrap(when, text string) string {
	if when == "" {
		return "---\n" + text
	}
	return "{{- if " + when + " }}\n---\n" + text + "{{- end }}\n"
}

// object of Kubernetes.
type object map[string]any

func (o object) kind() string   { return text(o["kind"]) }
func (o object) name() string   { return text(o.at("metadata")["name"]) }
func (o object) String() string { return o.kind() + " " + o.name() }

// at returns the map at a path, which it adds where there is none.
func (o object) at(path ...string) object {
	for _, key := range path {
		next, ok := o[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			o[key] = next
		}
		o = next
	}
	return o
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func build(kustomize, dir string) ([]object, error) {
	out, err := exec.Command(kustomize, "build", dir).Output()
	if err != nil {
		if exited := (&exec.ExitError{}); errors.As(err, &exited) {
			err = fmt.Errorf("%w: %s", err, exited.Stderr)
		}
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	var all []object
	for document := range strings.SplitSeq(string(out), "\n---\n") {
		o := object{}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("read an object of %s: %w", dir, err)
		}
		all = append(all, o)
	}
	return all, nil
}
