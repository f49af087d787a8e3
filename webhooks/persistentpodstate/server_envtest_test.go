//go:build envtest

package persistentpodstate_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/persistentpodstate"
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

func serve(mgr ctrl.Manager, api client.Client) error {
	mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
	w, err := persistentpodstate.New(api, persistentpodstate.Options{Namespace: "default"})
	if err != nil {
		return err
	}
	return w.SetupWithManager(mgr)
}

// object is one of a version, with the name of its target and keys under the name that the version has for them.
func object(version, namespace, name, apiVersion, target string) *unstructured.Unstructured {
	keys := map[string]string{"v1alpha1": "nodeTopologyKeys", "v1beta1": "keys"}[version]
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/" + version, "kind": "PersistentPodState",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"targetRef":                   map[string]any{"apiVersion": apiVersion, "kind": "StatefulSet", "name": target},
			"requiredPersistentTopology":  map[string]any{keys: []any{"zone"}},
			"preferredPersistentTopology": []any{map[string]any{"weight": int64(1), "preference": map[string]any{keys: []any{"host"}}}},
		},
	}}
	return o
}

// TestAdmission: both versions on an API server, with the generated configuration.
func TestAdmission(t *testing.T) {
	bad := object("v1beta1", "default", "bad", "apps/v1", "bad")
	unstructured.RemoveNestedField(bad.Object, "spec", "requiredPersistentTopology")
	unstructured.RemoveNestedField(bad.Object, "spec", "preferredPersistentTopology")
	g := reviewtest.Start(t, reviewtest.Input{Resources: []string{"persistentpodstates"}, Setup: serve, Bad: bad})
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) { testVersion(t, g, version) })
	}
}

func testVersion(t *testing.T, g *reviewtest.Ground, version string) {
	namespace, elsewhere := g.Namespace(t), g.Namespace(t)
	for _, o := range reviewtest.Manifests(t, version, "persistentpodstates.yaml") {
		o.SetNamespace(namespace)
		if err := g.Client.Create(t.Context(), o, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", o.GetName(), err)
		}
		o.SetLabels(map[string]string{"touched": "true"})
		if err := g.Client.Update(t.Context(), o); err != nil {
			t.Errorf("%s: update: %v", o.GetName(), err)
		}
	}
	create := func(o *unstructured.Unstructured) error { return g.Client.Create(t.Context(), o) }
	reviewtest.Refused(t, create(object(version, namespace, "second", "apps/v1beta2", "cache")), 400, "spec.targetRef")
	if err := create(object(version, elsewhere, "second", "apps/v1beta2", "cache")); err != nil {
		t.Errorf("another namespace: %v", err)
	}
	weight := object(version, namespace, "weight", "apps/v1", "weight")
	weight.Object["spec"].(map[string]any)["preferredPersistentTopology"].([]any)[0].(map[string]any)["weight"] = int64(101)
	reviewtest.Refused(t, create(weight), 400, "spec.preferredPersistentTopology[0].weight")
	o := object(version, namespace, "fresh", "apps/v1", "fresh")
	if err := create(o); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(o.Object, "apps/v1beta2", "spec", "targetRef", "apiVersion"); err != nil {
		t.Fatal(err)
	}
	reviewtest.Refused(t, g.Client.Update(t.Context(), o), 400, "spec.targetRef")
	game := object(version, namespace, "game", "example.com/v1", "game")
	reviewtest.Refused(t, create(game.DeepCopy()), 400, "spec.targetRef")
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kruise-configuration"}, Data: map[string]string{
		"PPS_Watch_Custom_Workload_WhiteList": `{"workloads":[{"Group":"example.com","Version":"v2","Kind":"StatefulSet"}]}`,
	}}
	if err := g.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := create(game); err != nil {
		t.Errorf("a kind of the white list: %v", err)
	}
	if err := g.Client.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}
