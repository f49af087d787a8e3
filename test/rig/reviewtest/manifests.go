package reviewtest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// path is that of a file of the repository, seen from the directory of a test.
func path(t testing.TB, elements ...string) string {
	t.Helper()
	for root, n := ".", 0; n < 5; root, n = filepath.Join(root, ".."), n+1 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(append([]string{root}, elements...)...)
		}
	}
	t.Fatal("there is no go.mod above the directory of the test")
	return ""
}

// configurations are the generated ones with their patches, with the wanted webhooks for the resources alone.
func configurations(t *testing.T, in Input) *envtest.WebhookInstallOptions {
	t.Helper()
	other := func(name string, rules []admissionregistrationv1.RuleWithOperations) bool {
		return len(in.Webhooks) > 0 && !slices.Contains(in.Webhooks, name) ||
			!slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
				return slices.ContainsFunc(r.Resources, func(name string) bool {
					return slices.Contains(in.Resources, name) || slices.Contains(in.BuiltIn, name)
				})
			})
	}
	var o envtest.WebhookInstallOptions
	for _, document := range documents(t, path(t, "config", "webhook", "manifests.yaml")) {
		mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
		validating := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := errors.Join(yaml.Unmarshal(document, mutating), yaml.Unmarshal(document, validating)); err != nil {
			t.Fatal(err)
		}
		if mutating.Kind == "MutatingWebhookConfiguration" {
			patched(t, document, "rollout-hold.yaml", mutating)
			mutating.Webhooks = slices.DeleteFunc(mutating.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
				return other(w.Name, w.Rules)
			})
			o.MutatingWebhooks = append(o.MutatingWebhooks, mutating)
			continue
		}
		patched(t, document, "deletion-scope.yaml", validating)
		validating.Webhooks = slices.DeleteFunc(validating.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return other(w.Name, w.Rules)
		})
		o.ValidatingWebhooks = append(o.ValidatingWebhooks, validating)
	}
	return &o
}

// patched reads a configuration with a patch of config/webhook, as kustomize does.
func patched(t *testing.T, document []byte, file string, into any) {
	t.Helper()
	scope, err := os.ReadFile(path(t, "config", "webhook", file))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := yaml.YAMLToJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON(scope)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := strategicpatch.StrategicMergePatch(plain, patch, into)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(whole, into); err != nil {
		t.Fatal(err)
	}
}

// Recorded are objects that the reference has written, of a list or one by one, such as "1-created",
// "imagepulljobs.v1beta1.yaml".
func Recorded(t *testing.T, step, file string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, list := range objects(t, "recorded", step, file) {
		items, isList, err := unstructured.NestedSlice(list.Object, "items")
		if err != nil {
			t.Fatal(err)
		}
		if !isList {
			all = append(all, list)
		}
		for _, item := range items {
			all = append(all, &unstructured.Unstructured{Object: item.(map[string]any)})
		}
	}
	return all
}

// Manifests are objects that users of the reference write, such as "v1beta1", "imagepulljobs.yaml".
func Manifests(t *testing.T, version, file string) []*unstructured.Unstructured {
	t.Helper()
	return objects(t, "manifests", version, file)
}

// Mistake is an invalid manifest, and the error of the schema for it.
type Mistake struct {
	Why, Version, Manifest, Refusal string
	Patch                           map[string]any
}

// Mistakes are those of a kind, such as "imagepulljobs.yaml". Those of no version are of both.
func Mistakes(t *testing.T, file string) []Mistake {
	t.Helper()
	var all []Mistake
	for _, document := range documents(t, path(t, "test", "compat", "testdata", "invalid", file)) {
		var m Mistake
		if err := yaml.Unmarshal(document, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func objects(t *testing.T, file ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range documents(t, path(t, append([]string{"test", "compat", "testdata"}, file...)...)) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) > 0 {
			all = append(all, document)
		}
	}
}
