package main

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	bothVersions     = "not .Values.crds.storageVersionOnly"
	storedVersion    = ".Values.crds.storageVersionOnly"
	managerNamespace = "kruise-system"
	secretNamespace  = "kruise-daemon-config"
)

// Placeholders stand for template expressions in objects, for these are no YAML.
//
//	value(x)     the value of x
//	block(x)     the YAML of x, below the key
//	optional(x)  the same, and no key where x is empty
//	include(x)   lines of the named template x, in a list or a map
func value(x string) string    { return "<<value " + x + ">>" }
func block(x string) string    { return "<<block " + x + ">>" }
func optional(x string) string { return "<<optional " + x + ">>" }
func include(x string) string  { return "<<include " + x + ">>" }

// render returns the template of an object.
func render(o object) (string, error) {
	switch o.kind() {
	case "CustomResourceDefinition":
		return definition(o)
	case "Deployment":
		manager(o)
	case "DaemonSet":
		daemon(o)
	case "ServiceAccount":
		if o.name() == "kruise-metrics-reader" {
			break // no process of ours has it
		}
		o.at("metadata")["annotations"] = optional(".Values.serviceAccount.annotations")
	case "ConfigMap", "PodMonitor", "PrometheusRule":
		o.at("metadata", "labels")["chart"] = include("kruisekit.metricsLabels")
	case "ServiceMonitor":
		o.at("metadata", "labels")["chart"] = include("kruisekit.metricsLabels")
		o.at("spec")["endpoints"] = []any{include("kruisekit.managerEndpoint")}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		webhooks(o)
	}
	return expand(o)
}

// expand writes an object with expressions in place of placeholders.
func expand(o any) (string, error) {
	out, err := yaml.Marshal(o)
	if err != nil {
		return "", err
	}
	return expandText(string(out)), nil
}

var (
	single = regexp.MustCompile(`['"]?<<value (.*?)>>['"]?`)
	whole  = regexp.MustCompile(`(?m)^( *)(- )?(?:([\w./-]+): )?['"]?<<(block|optional|include) (.*?)>>['"]?\n`)
)

func expandText(text string) string {
	if strings.Contains(text, "{{") {
		text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`) // a description may show a template
	}
	text = whole.ReplaceAllStringFunc(text, func(line string) string {
		m := whole.FindStringSubmatch(line)
		indent, key, how, x := len(m[1]), m[3], m[4], unquote(m[5])
		switch how {
		case "include":
			return fmt.Sprintf("%s{{- include %q . | nindent %d }}\n", m[1], x, indent)
		case "block":
			return fmt.Sprintf("%s%s: {{- toYaml %s | nindent %d }}\n", m[1], key, x, indent+2)
		}
		return fmt.Sprintf("%s{{- with %s }}\n%s%s: {{- toYaml . | nindent %d }}\n%s{{- end }}\n",
			m[1], x, m[1], key, indent+2, m[1])
	})
	text = single.ReplaceAllStringFunc(text, func(found string) string {
		return "{{ " + unquote(single.FindStringSubmatch(found)[1]) + " }}"
	})
	text = strings.ReplaceAll(text, secretNamespace, "{{ .Values.daemon.secretNamespace }}")
	return strings.ReplaceAll(text, managerNamespace, "{{ .Values.installation.namespace }}")
}

// only has the lines depend on a condition, where there is one.
func only(when, lines string) string {
	if when == "" {
		return lines
	}
	return "{{- if " + when + " }}\n" + lines + "{{- end }}\n"
}

// unquote undoes what YAML does to quotes in a quoted scalar.
func unquote(x string) string {
	return strings.ReplaceAll(strings.ReplaceAll(x, `\"`, `"`), `''`, `'`)
}

// definition keeps a CRD when the release goes, and can leave the older version out.
func definition(o object) (string, error) {
	spec := o.at("spec")
	versions, _ := spec["versions"].([]any)
	conversion := spec["conversion"]
	delete(spec, "versions")
	delete(spec, "conversion")
	o.at("metadata", "annotations")["chart"] = include("kruisekit.crdAnnotations")
	converted := false
	if c, ok := conversion.(map[string]any); ok && c["strategy"] == "Webhook" {
		converted = true
		o.at("metadata", "annotations")["chart"] = include("kruisekit.convertedAnnotations")
	}
	text, err := expand(o)
	if err != nil {
		return "", err
	}
	text, found := strings.CutSuffix(text, "\n")
	if !found || !strings.Contains(text, "\nspec:\n") {
		return "", fmt.Errorf("%s does not end with its spec", o)
	}
	var out strings.Builder
	out.WriteString(text + "\n")
	part := func(when string, spec map[string]any) error {
		more, err := yaml.Marshal(map[string]any{"spec": spec})
		out.WriteString(only(when, expandText(strings.TrimPrefix(string(more), "spec:\n"))))
		return err
	}
	switch {
	case converted:
		err = part(bothVersions, map[string]any{"conversion": conversion})
		if err == nil {
			err = part(storedVersion, map[string]any{"conversion": map[string]any{"strategy": "None"}})
		}
	case conversion != nil:
		err = part("", map[string]any{"conversion": conversion})
	}
	if err != nil {
		return "", err
	}
	list, err := versionsOf(versions)
	return out.String() + list, err
}

// versionsOf writes the versions of a CRD, of which the stored one is always there.
func versionsOf(versions []any) (string, error) {
	var out strings.Builder
	out.WriteString("  versions:\n")
	for _, version := range versions {
		v, _ := version.(map[string]any)
		when := ""
		if v["storage"] != true {
			when = bothVersions
		}
		more, err := yaml.Marshal([]any{v})
		if err != nil {
			return "", err
		}
		lines := expandText("  " + strings.ReplaceAll(strings.TrimSuffix(string(more), "\n"), "\n", "\n  ") + "\n")
		out.WriteString(only(when, lines))
	}
	return out.String(), nil
}
