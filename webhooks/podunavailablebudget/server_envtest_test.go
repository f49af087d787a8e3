//go:build envtest

package podunavailablebudget_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/budgets"
	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/podunavailablebudget"
)

const (
	pods    = "spec.selector, targetRef"
	amounts = "spec.maxUnavailable, minAvailable"
	// operations and total are the paths of what v1alpha1 has in annotations.
	operations = "metadata.annotations[kruise.io/pub-protect-operations]"
	total      = "metadata.annotations[pub.kruise.io/protect-total-replicas]"
)

// TestAdmission shares one API server, with the generated configuration.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"podunavailablebudgets"}, Setup: serve(podunavailablebudget.Options{}),
		Bad: newBudget(t, "v1beta1", "default", `{"spec":{"maxUnavailable":"101%"}}`),
	})
	k := reviewtest.Kind{Name: "podunavailablebudget", New: newBudget}
	t.Run("Manifests", func(t *testing.T) { k.Manifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { k.Mistakes(t, g) })
	t.Run("Creations", func(t *testing.T) { testCreations(t, g) })
	t.Run("Others", func(t *testing.T) { testOthers(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Off", func(t *testing.T) { k.Off(t, g, serve(podunavailablebudget.Options{Off: true}), 400) })
}

// serve serves the webhook.
func serve(o podunavailablebudget.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, _ client.Client) error {
		guard, err := budgets.FromManager(mgr, budgets.Options{})
		if err != nil {
			return err
		}
		w, err := podunavailablebudget.New(guard, o)
		if err != nil {
			return err
		}
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		mgr.GetWebhookServer().Register(podunavailablebudget.Path, reviewtest.ExceptEarly(w.Validate))
		return nil
	}
}

// newBudget is a valid budget that is changed by a merge patch.
func newBudget(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	plain := fmt.Sprintf(`{"apiVersion":"policy.kruise.io/%s","kind":"PodUnavailableBudget","metadata":{"generateName":"b-","namespace":%q},
		"spec":{"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}}`, version, namespace)
	b := &unstructured.Unstructured{}
	if err := b.UnmarshalJSON([]byte(plaintest.Patched(t, plain, patch))); err != nil {
		t.Fatal(err)
	}
	return b
}

// testCreations: the webhook rejects every fault of a new budget with 400 and its path, in both versions. Budgets have no defaults.
func testCreations(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for name, c := range map[string]struct {
		patch    string
		paths    []string
		versions []string
	}{
		"a selector":             {``, nil, nil},
		"a target":               {`{"spec":{"selector":null,"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`, nil, nil},
		"a share":                {`{"spec":{"maxUnavailable":null,"minAvailable":"100%"}}`, nil, nil},
		"fields":                 {`{"spec":{"protectOperations":["DELETE","RESIZE"],"protectTotalReplicas":9}}`, nil, []string{"v1beta1"}},
		"annotations":            {`{"metadata":{"annotations":{"kruise.io/pub-protect-operations":"DELETE,EVICT","pub.kruise.io/protect-total-replicas":"15"}}}`, nil, []string{"v1alpha1"}},
		"nothing":                {`{"spec":null}`, []string{pods, amounts}, nil},
		"a selector of nothing":  {`{"spec":{"selector":{"matchLabels":null}}}`, []string{"spec.selector"}, nil},
		"a malformed selector":   {`{"spec":{"selector":{"matchLabels":{"app":"a b"}}}}`, []string{"spec.selector.matchLabels"}, nil},
		"an incomplete target":   {`{"spec":{"selector":null,"targetRef":{"kind":"Deployment"}}}`, []string{"spec.targetRef"}, nil},
		"both amounts":           {`{"spec":{"minAvailable":1}}`, []string{amounts}, nil},
		"a negative amount":      {`{"spec":{"maxUnavailable":-1}}`, []string{"spec.maxUnavailable"}, nil},
		"ignoring nothing":       {`{"spec":{"ignoredPodSelector":{}}}`, []string{"spec.ignoredPodSelector"}, []string{"v1beta1"}},
		"two totals":             {`{"metadata":{"annotations":{"pub.kruise.io/protect-total-replicas":"1"}},"spec":{"protectTotalReplicas":2}}`, []string{total}, []string{"v1beta1"}},
		"malformed annotations":  {`{"metadata":{"annotations":{"kruise.io/pub-protect-operations":"BOGUS","pub.kruise.io/protect-total-replicas":"not-a-number"}}}`, []string{total, operations}, []string{"v1alpha1"}},
		"an ignored annotation":  {`{"metadata":{"annotations":{"kruise.io/pub-protect-operations":"BOGUS"}}}`, nil, []string{"v1beta1"}},
		"faults of three fields": {`{"spec":{"targetRef":{"name":"a"},"maxUnavailable":"101%","ignoredPodSelector":{}}}`, []string{pods, "spec.maxUnavailable", "spec.ignoredPodSelector"}, []string{"v1beta1"}},
	} {
		if c.versions == nil {
			c.versions = []string{"v1alpha1", "v1beta1"}
		}
		for _, version := range c.versions {
			t.Run(name+"/"+version, func(t *testing.T) {
				b := newBudget(t, version, namespace, c.patch)
				sent := b.DeepCopy()
				err := g.Client.Create(t.Context(), b, client.DryRunAll)
				if len(c.paths) > 0 {
					reviewtest.Refused(t, err, 400, c.paths...)
				} else if diff := cmp.Diff(sent.Object["spec"], b.Object["spec"]); err != nil || diff != "" {
					t.Errorf("%v, the spec differs (-sent +stored):\n%s", err, diff)
				}
			})
		}
	}
}

// testOthers: the webhook finds the other budgets of the namespace in its cache.
func testOthers(t *testing.T, g *reviewtest.Ground) {
	namespace, elsewhere := g.Namespace(t), g.Namespace(t)
	const target = `{"spec":{"selector":null,"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}}`
	for _, patch := range []string{``, target} {
		if err := g.Client.Create(t.Context(), newBudget(t, "v1beta1", namespace, patch)); err != nil {
			t.Fatal(err)
		}
	}
	create := func(ctx context.Context, version, namespace, patch string) error {
		return g.Client.Create(ctx, newBudget(t, version, namespace, patch), client.DryRunAll)
	}
	for patch, path := range map[string]string{``: "spec.selector", target: "spec.targetReference"} {
		reviewtest.Until(t, "the cache lacks a budget", func(ctx context.Context) error {
			return reviewtest.Says(create(ctx, "v1beta1", namespace, patch), "denied the request", path+": ")
		})
		reviewtest.Refused(t, create(t.Context(), "v1alpha1", namespace, patch), 400, path)
		if err := create(t.Context(), "v1beta1", elsewhere, patch); err != nil {
			t.Errorf("another namespace: %v", err)
		}
	}
	if err := create(t.Context(), "v1beta1", namespace, `{"spec":{"selector":{"matchLabels":{"tier":"a"}}}}`); err != nil {
		t.Errorf("another key: %v", err)
	}
}

// testUpdates: which pods a budget guards cannot change, and a fault that the stored budget has rejects no update.
func testUpdates(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	valid := newBudget(t, "v1beta1", namespace, `{"spec":{"selector":{"matchLabels":{"app":"db"}}}}`)
	faulty := newBudget(t, "v1beta1", namespace, `{"metadata":{"generateName":null,"name":"early","finalizers":["example.com/hold"]},"spec":{"maxUnavailable":"101%"}}`)
	for _, b := range []*unstructured.Unstructured{valid, faulty} {
		if err := g.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		budget *unstructured.Unstructured
		change string
		paths  []string
	}{
		"another amount":        {valid, `{"spec":{"maxUnavailable":"20%"}}`, nil},
		"another selector":      {valid, `{"spec":{"selector":{"matchLabels":{"app":"web-2"}}}}`, []string{pods}},
		"a target":              {valid, `{"spec":{"selector":null,"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"a"}}}`, []string{pods}},
		"a new fault":           {valid, `{"spec":{"maxUnavailable":-1}}`, []string{"spec.maxUnavailable"}},
		"a stored fault":        {faulty, `{"metadata":{"labels":{"a":"b"}}}`, nil},
		"a new fault beside it": {faulty, `{"spec":{"ignoredPodSelector":{}}}`, []string{"spec.ignoredPodSelector"}},
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if version == "v1alpha1" && strings.Contains(c.change, "ignoredPodSelector") { // v1alpha1 has no such field
				continue
			}
			t.Run(name+"/"+version, func(t *testing.T) {
				b := newBudget(t, version, namespace, "")
				b.SetName(c.budget.GetName())
				change := client.RawPatch(types.MergePatchType, []byte(c.change))
				reviewtest.Judged(t, g.Client.Patch(t.Context(), b, change, client.DryRunAll), 400, c.paths...)
			})
		}
	}
	status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"unavailableAllowed":1,"currentAvailable":2,"desiredAvailable":1,"totalReplicas":2}}`))
	if err := g.Client.Status().Patch(t.Context(), faulty.DeepCopy(), status); err != nil {
		t.Errorf("status: %v", err)
	}
	g.Leave(t, faulty)
}
