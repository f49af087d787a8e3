//go:build envtest

package statefulset_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/statefulset"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"statefulsets"},
		Setup: func(mgr ctrl.Manager, api client.Client) error {
			mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
			w, err := statefulset.New(api, statefulset.Options{ExpandClaims: true})
			if err != nil {
				return err
			}
			return w.SetupWithManager(mgr)
		},
		Bad: newSet(t, "v1beta1", "default", `{"selector":{"matchLabels":null}}`),
	})
	k := kind()
	t.Run("Manifests", func(t *testing.T) { k.Manifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { k.Mistakes(t, g) })
	t.Run("Recorded", func(t *testing.T) { k.Recorded(t, g, "template", "volumeClaimTemplates", "updateStrategy") })
	t.Run("Versions", func(t *testing.T) {
		k.Keeps(t, g, `{"reserveOrdinals":[1,"3-5"],"ordinals":{"start":2},"scaleStrategy":{"maxUnavailable":1},
			"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"},"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},
			"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"}}`, "replicas")
	})
	t.Run("Expansion", func(t *testing.T) { testExpansion(t, g) })
	reviewtest.NoTemplates(t, g)
	t.Run("Policy", func(t *testing.T) {
		k.Policy(t, g, reviewtest.Alone{Defaulted: "revisionHistoryLimit", Bad: `{"updateStrategy":{"type":"x"}}`, At: "spec.updateStrategy.type"}, func(t *testing.T, reviewer string) {
			reviewAll(t, g, reviewer)
		})
	})
}

func kind() reviewtest.Kind { return reviewtest.Kind{Name: "statefulset", New: newSet} }

// newSet is a StatefulSet of one container whose spec is changed by a merge patch.
func newSet(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{}
	if err := set.UnmarshalJSON([]byte(fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"StatefulSet",
		"metadata":{"generateName":"set-","namespace":%q},"spec":%s}`, version, namespace, spec(t, patch)))); err != nil {
		t.Fatal(err)
	}
	return set
}

// testExpansion has a class that cannot expand refused, by an API server that has it.
func testExpansion(t *testing.T, g *reviewtest.Ground) {
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": "slow"}, "provisioner": "example.com/none",
	}}
	if err := g.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	set := newSet(t, "v1beta1", g.Namespace(t), sized("1Gi", "slow", ""))
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	grown := newSet(t, "v1beta1", set.GetNamespace(), sized("2Gi", "slow", ""))
	set.Object["spec"].(map[string]any)["volumeClaimTemplates"] = grown.Object["spec"].(map[string]any)["volumeClaimTemplates"]
	if err := reviewtest.Says(g.Client.Update(t.Context(), set), "does not allow volume expansion", "spec.volumeClaimTemplates[data].spec.resources"); err != nil {
		t.Error(err)
	}
}

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, reviewer string) {
	kind().Creations(t, g, reviewer, map[string]struct{ Version, Patch, Want string }{
		"nothing is set":       {"v1beta1", ``, ""},
		"nothing, v1alpha1":    {"v1alpha1", ``, ""},
		"a type of pods":       {"v1beta1", `{"updateStrategy":{"type":"ReCreate"}}`, "spec.updateStrategy.type"},
		"an empty type":        {"v1alpha1", `{"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":""}}}`, ""},
		"OnDelete":             {"v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, ""},
		"an unknown policy":    {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"Gently"}}}`, "podUpdatePolicy"},
		"a negative partition": {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"partition":-1}}}`, "spec.updateStrategy.rollingUpdate.partition"},
		"an unknown order":     {"v1beta1", `{"podManagementPolicy":"Sometimes"}`, "spec.podManagementPolicy"},
		"an injected volume":   {"v1beta1", `{"template":{"spec":{"containers":[{"name":"main","image":"app:1","volumeMounts":[{"name":"injected","mountPath":"/i"}]}]}}}`, ""},
		"an empty order":       {"v1beta1", `{"podManagementPolicy":""}`, ""},
	})
	kind().Updates(t, g, reviewtest.Updates{Reviewer: reviewer, Cases: map[string]reviewtest.Update{
		"another selector": {Field: "selector", Value: map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, Want: "spec: "},
		"another service":  {Field: "serviceName", Value: "other", Want: "spec: "},
		"another order":    {Field: "podManagementPolicy", Value: "Parallel", Want: "spec: "},
		"the same order":   {Field: "podManagementPolicy", Value: "OrderedReady"},
		"more pods":        {Field: "replicas", Value: int64(4)},
	}})
}
