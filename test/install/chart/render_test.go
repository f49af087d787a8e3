package chart

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

// objects by kind, namespace and name.
type objects map[string]map[string]any

var load = sync.OnceValues(func() (*chart.Chart, error) {
	return loader.LoadDir(filepath.Join(root, "charts", "kruisekit"))
})

// render renders the chart with values over those of dev, each "a.b=YAML".
func render(values ...string) (objects, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	for _, v := range append([]string{
		"manager.image.repository=kruise-manager", "manager.image.tag=dev",
		"daemon.image.repository=kruise-daemon", "daemon.image.tag=dev",
	}, values...) {
		path, text, _ := strings.Cut(v, "=")
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return nil, fmt.Errorf("value %s: %w", v, err)
		}
		keys := strings.Split(path, ".")
		at := given
		for _, key := range keys[:len(keys)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		at[keys[len(keys)-1]] = value
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.2+gke.7", Major: "1", Minor: "36+"}
	all, err := chartutil.ToRenderValues(c, given,
		chartutil.ReleaseOptions{Name: "kruise", Namespace: "default", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	rendered := objects{}
	for path, text := range files {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		if err := rendered.read([]byte(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	for id, o := range rendered { // objects of hooks are no part of the release
		if annotation(o, "helm.sh/hook") != "" {
			delete(rendered, id)
		}
	}
	return rendered, nil
}

// read adds the objects of a stream.
func (o objects) read(stream []byte) error {
	for _, document := range bytes.Split(append([]byte("\n"), stream...), []byte("\n---")) {
		var object map[string]any
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return fmt.Errorf("%w in\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		id := identity(object)
		if o[id] != nil {
			if annotation(object, "helm.sh/hook") != "" {
				continue
			}
			if annotation(o[id], "helm.sh/hook") == "" {
				return fmt.Errorf("%s is there twice", id)
			}
		}
		o[id] = object
	}
	return nil
}

func metadata(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	return m
}

func annotation(object map[string]any, key string) string {
	all, _ := metadata(object)["annotations"].(map[string]any)
	value, _ := all[key].(string)
	return value
}

func identity(object map[string]any) string {
	m := metadata(object)
	namespace, _ := m["namespace"].(string)
	return fmt.Sprintf("%v %s/%v", object["kind"], namespace, m["name"])
}

// kustomized are the objects of directories below config/.
func kustomized(t *testing.T, directories ...string) objects {
	t.Helper()
	all := objects{}
	for _, directory := range directories {
		out, err := build(directory)
		if err != nil {
			t.Fatal(err)
		}
		if err := all.read(out); err != nil {
			t.Fatalf("%s: %v", directory, err)
		}
	}
	return all
}

var tool = sync.OnceValues(func() (string, error) {
	out, err := exec.Command(filepath.Join(root, "hack", "tool"), "kustomize").Output()
	return strings.TrimSpace(string(out)), err
})

var builds sync.Map

func build(directory string) ([]byte, error) {
	if out, ok := builds.Load(directory); ok {
		return out.([]byte), nil
	}
	kustomize, err := tool()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(kustomize, "build", filepath.Join(root, "config", directory)).Output()
	if err != nil {
		return nil, fmt.Errorf("build config/%s: %w", directory, err)
	}
	builds.Store(directory, out)
	return out, nil
}

// comparable brings what means the same to one form: annotations of Helm, flags that come again, and null.
func comparable(all objects) objects {
	for _, o := range all {
		if annotations, ok := metadata(o)["annotations"].(map[string]any); ok {
			delete(annotations, "helm.sh/resource-policy")
			if len(annotations) == 0 {
				delete(metadata(o), "annotations")
			}
		}
		prune(o)
	}
	return all
}

func prune(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
				continue
			}
			if args, ok := value.([]any); ok && key == "args" {
				v[key] = flags(args)
			}
			prune(value)
		}
	case []any:
		for _, item := range v {
			prune(item)
		}
	}
}

// flags leaves the last of each flag, sorted.
func flags(args []any) []any {
	last := map[string]string{}
	for _, arg := range args {
		text, _ := arg.(string)
		name, _, _ := strings.Cut(text, "=")
		last[name] = text
	}
	var all []any
	for _, text := range last {
		all = append(all, text)
	}
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return all
}
