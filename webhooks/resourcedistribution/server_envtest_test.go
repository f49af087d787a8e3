//go:build envtest

package resourcedistribution_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

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
		Bad: newDistribution(t, "v1beta1", `{"spec":{"resource":{"kind":"Service"}}}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { reviewtest.Kind{Name: "resourcedistribution"}.Mistakes(t, g) })
	t.Run("Creations", func(t *testing.T) { testCreations(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Off", func(t *testing.T) { testOff(t, g) })
}

// early is the name of distributions that were created before the webhook.
const early = "early"

// serve serves the webhook. It does not review the creation of early distributions.
func serve(o resourcedistribution.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, _ client.Client) error {
		w := resourcedistribution.New(o)
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		mgr.GetWebhookServer().Register(resourcedistribution.Path, &admission.Webhook{Handler: admission.HandlerFunc(
			func(ctx context.Context, req admission.Request) admission.Response {
				if req.Name == early && req.Operation == admissionv1.Create {
					return admission.Allowed("")
				}
				return w.Validate(ctx, req)
			})})
		return nil
	}
}

// newDistribution is a valid distribution that is changed by a merge patch.
func newDistribution(t *testing.T, version, patch string) *unstructured.Unstructured {
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
				err := g.Client.Create(t.Context(), newDistribution(t, version, c.patch), client.DryRunAll)
				if len(c.paths) > 0 {
					reviewtest.Refused(t, err, 422, c.paths...)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// testUpdates: kind and name of the resource cannot change, and a fault that the stored distribution has rejects no update.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	valid := newDistribution(t, "v1beta1", "")
	faulty := newDistribution(t, "v1beta1", `{"metadata":{"generateName":null,"name":"early","finalizers":["example.com/hold"]},
		"spec":{"targets":{"includedNamespaces":{"list":[{"name":"INVALID"}]}}}}`)
	for _, d := range []*unstructured.Unstructured{valid, faulty} {
		if err := g.Client.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		distribution  *unstructured.Unstructured
		change, paths string
	}{
		"other data":            {valid, `{"spec":{"resource":{"stringData":{"user":"writer"}}}}`, ""},
		"all namespaces":        {valid, `{"spec":{"targets":{"allNamespaces":true}}}`, ""},
		"another name":          {valid, `{"spec":{"resource":{"metadata":{"name":"push"}}}}`, resource},
		"another kind":          {valid, `{"spec":{"resource":{"kind":"ConfigMap","stringData":null}}}`, resource},
		"a new fault":           {valid, `{"spec":{"targets":{"includedNamespaces":{"list":[{"name":"INVALID"}]}}}}`, included},
		"a stored fault":        {faulty, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"a new fault beside it": {faulty, `{"spec":{"targets":{"excludedNamespaces":{"list":[{"name":"a b"}]}}}}`, targets + ".excludedNamespaces"},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			t.Run(name+"/"+version, func(t *testing.T) {
				d := newDistribution(t, version, "")
				d.SetName(c.distribution.GetName())
				err := g.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(c.change)), client.DryRunAll)
				if c.paths != "" {
					reviewtest.Refused(t, err, 422, c.paths)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"desired":1,"failed":1,"conditions":[{"type":"NamespaceNotExists","status":"True"}]}}`))
	if err := g.Client.Status().Patch(t.Context(), faulty.DeepCopy(), status); err != nil {
		t.Errorf("status: %v", err)
	}
	leave(t, g, faulty)
}

// leave deletes a distribution, which then loses its finalizers.
func leave(t *testing.T, g *reviewtest.Ground, d *unstructured.Unstructured) {
	t.Helper()
	if err := g.Client.Delete(t.Context(), d.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := g.Client.Patch(t.Context(), d.DeepCopy(), change); err != nil {
		t.Errorf("remove the finalizers of a distribution that is being deleted: %v", err)
	}
}

// testOff: with the gate off every distribution is rejected with 403, and a distribution that is being deleted can still leave.
func testOff(t *testing.T, g *reviewtest.Ground) {
	stored := newDistribution(t, "v1beta1", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	if err := g.Client.Create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	g.Serve(t, serve(resourcedistribution.Options{}))
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		reviewtest.Refused(t, g.Client.Create(t.Context(), newDistribution(t, version, "")), 403)
	}
	stored.SetLabels(map[string]string{"a": "b"})
	reviewtest.Refused(t, g.Client.Update(t.Context(), stored), 403)
	leave(t, g, stored)
}
