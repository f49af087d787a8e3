//go:build envtest

package resourcedistribution_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/resourcedistribution"
)

const (
	resource = "spec.resource"
	targets  = "spec.targets"
	included = "spec.targets.includedNamespaces"
)

// TestAdmission shares one API server, with the generated configuration.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"resourcedistributions"}, Setup: serve(resourcedistribution.Options{On: true}),
		Bad: newDistribution(t, "v1beta1", "", `{"spec":{"resource":{"kind":"Service"}}}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	k := reviewtest.Kind{Name: "resourcedistribution", New: newDistribution}
	t.Run("Mistakes", func(t *testing.T) { k.Mistakes(t, g) })
	t.Run("Creations", func(t *testing.T) { testCreations(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Off", func(t *testing.T) { k.Off(t, g, serve(resourcedistribution.Options{}), 403) })
}

// serve serves the webhook.
func serve(o resourcedistribution.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, _ client.Client) error {
		w := resourcedistribution.New(o)
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		mgr.GetWebhookServer().Register(resourcedistribution.Path, reviewtest.ExceptEarly(w.Validate))
		return nil
	}
}

// newDistribution is a valid distribution that is changed by a merge patch. The kind has no namespace.
func newDistribution(t *testing.T, version, _, patch string) *unstructured.Unstructured {
	t.Helper()
	plain := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"ResourceDistribution","metadata":{"generateName":"d-"},"spec":{"targets":{},
		"resource":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},"stringData":{"user":"reader"}}}}`, version)
	d := &unstructured.Unstructured{}
	if err := d.UnmarshalJSON([]byte(plaintest.Patched(t, plain, patch))); err != nil {
		t.Fatal(err)
	}
	return d
}

// testManifests applies the manifests of the reference's API unchanged, and once more as an update of something else. Distributions have no
// defaults: what is stored is what was sent, but for an empty selector that the conversion adds.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, d := range reviewtest.Manifests(t, version, "resourcedistributions.yaml") {
			sent := d.DeepCopy()
			if err := g.Client.Create(t.Context(), d, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, d.GetName(), err)
				continue
			}
			for _, o := range []*unstructured.Unstructured{sent, d} {
				prune(o.Object["spec"].(map[string]any)["targets"].(map[string]any))
			}
			if diff := cmp.Diff(sent.Object["spec"], d.Object["spec"]); diff != "" {
				t.Errorf("%s, %s is stored with another spec (-sent +stored):\n%s", version, d.GetName(), diff)
			}
			d.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), d); err != nil {
				t.Errorf("%s, %s: update: %v", version, d.GetName(), err)
			}
			if err := g.Client.Delete(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
	}
}

// prune removes empty targets.
func prune(targets map[string]any) {
	for name, value := range targets {
		if below, is := value.(map[string]any); is && len(below) == 0 {
			delete(targets, name)
		}
	}
}

// testCreations: the webhook rejects every fault of a new distribution with 422 and its path, in both versions.
func testCreations(t *testing.T, g *reviewtest.Ground) {
	for name, c := range map[string]struct {
		patch    string
		paths    []string
		versions []string
	}{
		"no targets":             {``, nil, nil},
		"a namespace, ignored":   {`{"spec":{"resource":{"metadata":{"namespace":"nowhere"}}}}`, nil, nil},
		"a system namespace":     {`{"spec":{"targets":{"includedNamespaces":{"list":[{"name":"kube-system"}]}}}}`, nil, nil},
		"a selector":             {`{"spec":{"targets":{"namespaceSelector":{"matchLabels":{"a":"b"}}}}}`, nil, []string{"v1beta1"}},
		"an older selector":      {`{"spec":{"targets":{"namespaceLabelSelector":{"matchLabels":{"a":"b"}}}}}`, nil, []string{"v1alpha1"}},
		"a bad selector":         {`{"spec":{"targets":{"namespaceSelector":{"matchLabels":{"a b":"c"}}}}}`, []string{targets + ".namespaceSelector"}, []string{"v1beta1"}},
		"a bad older selector":   {`{"spec":{"targets":{"namespaceLabelSelector":{"matchLabels":{"a b":"c"}}}}}`, []string{targets + ".namespaceSelector"}, []string{"v1alpha1"}},
		"a Deployment":           {`{"spec":{"resource":{"apiVersion":"apps/v1","kind":"Deployment"}}}`, []string{resource}, nil},
		"a malformed key":        {`{"spec":{"resource":{"stringData":{"a b":"c"}}}}`, []string{resource + ".data[a b]"}, nil},
		"a malformed namespace":  {`{"spec":{"targets":{"includedNamespaces":{"list":[{"name":"INVALID"}]}}}}`, []string{included}, nil},
		"a nameless namespace":   {`{"spec":{"targets":{"excludedNamespaces":{"list":[{}]}}}}`, []string{targets + ".excludedNamespaces"}, nil},
		"a namespace twice":      {`{"spec":{"targets":{"includedNamespaces":{"list":[{"name":"a"}]},"excludedNamespaces":{"list":[{"name":"a"}]}}}}`, []string{targets}, nil},
		"faults of three fields": {`{"spec":{"resource":{"kind":"Pod"},"targets":{"includedNamespaces":{"list":[{"name":""},{"name":"a"}]},"excludedNamespaces":{"list":[{"name":"a"}]}}}}`, []string{resource, included, targets}, nil},
	} {
		if c.versions == nil {
			c.versions = []string{"v1alpha1", "v1beta1"}
		}
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				err := g.Client.Create(t.Context(), newDistribution(t, version, "", c.patch), client.DryRunAll)
				reviewtest.Judged(t, err, 422, c.paths...)
			})
		}
	}
}

// testUpdates: kind and name of the resource cannot change, and a fault that the stored distribution has rejects no update.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	valid := newDistribution(t, "v1beta1", "", "")
	faulty := newDistribution(t, "v1beta1", "", `{"metadata":{"generateName":null,"name":"early","finalizers":["example.com/hold"]},
		"spec":{"targets":{"includedNamespaces":{"list":[{"name":"INVALID"}]}}}}`)
	for _, d := range []*unstructured.Unstructured{valid, faulty} {
		if err := g.Client.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		distribution *unstructured.Unstructured
		change       string
		paths        []string
	}{
		"other data":            {valid, `{"spec":{"resource":{"stringData":{"user":"writer"}}}}`, nil},
		"all namespaces":        {valid, `{"spec":{"targets":{"allNamespaces":true}}}`, nil},
		"another name":          {valid, `{"spec":{"resource":{"metadata":{"name":"push"}}}}`, []string{resource}},
		"another kind":          {valid, `{"spec":{"resource":{"kind":"ConfigMap","stringData":null}}}`, []string{resource}},
		"a new fault":           {valid, `{"spec":{"targets":{"includedNamespaces":{"list":[{"name":"INVALID"}]}}}}`, []string{included}},
		"a stored fault":        {faulty, `{"metadata":{"labels":{"a":"b"}}}`, nil},
		"a new fault beside it": {faulty, `{"spec":{"targets":{"excludedNamespaces":{"list":[{"name":"a b"}]}}}}`, []string{targets + ".excludedNamespaces"}},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				d := newDistribution(t, version, "", "")
				d.SetName(c.distribution.GetName())
				change := client.RawPatch(types.MergePatchType, []byte(c.change))
				reviewtest.Judged(t, g.Client.Patch(t.Context(), d, change, client.DryRunAll), 422, c.paths...)
			})
		}
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"desired":1,"failed":1,"conditions":[{"type":"NamespaceNotExists","status":"True"}]}}`))
	if err := g.Client.Status().Patch(t.Context(), faulty.DeepCopy(), status); err != nil {
		t.Errorf("status: %v", err)
	}
	g.Leave(t, faulty)
}
