//go:build envtest

package statefulset_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
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
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Versions", func(t *testing.T) { testVersions(t, g) })
	t.Run("Expansion", func(t *testing.T) { testExpansion(t, g) })
	var left corev1.PodTemplateList
	if err := g.Client.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d PodTemplates left behind (%v)", len(left.Items), err)
	}
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

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

// testManifests applies the manifests of the reference's API unchanged, and once more as an update of something else.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		for _, set := range reviewtest.Manifests(t, version, "statefulsets.yaml") {
			set.SetNamespace(namespace)
			if err := g.Client.Create(t.Context(), set, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", version, set.GetName(), err)
			}
			set.SetLabels(map[string]string{"touched": "true"})
			if err := g.Client.Update(t.Context(), set); err != nil {
				t.Errorf("%s, %s: update: %v", version, set.GetName(), err)
			}
		}
	}
}

// testMistakes makes mistakes in manifests; with the webhooks in front the schema still names what is wrong.
func testMistakes(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, m := range reviewtest.Mistakes(t, "statefulsets.yaml") {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if m.Version != "" && m.Version != version {
				continue
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				for _, set := range reviewtest.Manifests(t, version, "statefulsets.yaml") {
					if set.GetName() != m.Manifest {
						continue
					}
					plaintest.Merge(set.Object, m.Patch)
					set.SetNamespace(namespace)
					err := g.Client.Create(t.Context(), set, client.DryRunAll, client.FieldValidation("Strict"))
					if err == nil || !strings.Contains(err.Error(), m.Refusal) {
						t.Errorf("want %q, got %v", m.Refusal, err)
					}
				}
			})
		}
	}
}

// testRecorded creates what the reference has defaulted: there is nothing left to add, so that a set that is taken over and changed differs
// from its revisions in nothing but the change.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, recorded := range reviewtest.Recorded(t, "1-created", "statefulsets."+version+".yaml") {
			set := newSet(t, version, namespace, "")
			set.Object["spec"] = recorded.DeepCopy().Object["spec"]
			if err := g.Client.Create(t.Context(), set); err != nil {
				t.Error(err)
			}
			for _, path := range []string{"template", "volumeClaimTemplates", "updateStrategy"} {
				was, is := reviewtest.Field(recorded, "spec", path), reviewtest.Field(set, "spec", path)
				if diff := cmp.Diff(plaintest.Encode(t, was), plaintest.Encode(t, is)); diff != "" {
					t.Errorf("%s, %s, %s (-recorded +now):\n%s", version, recorded.GetName(), path, diff)
				}
			}
		}
	}
}

// testVersions writes a set of the newer version through the older one, as old clients do: nothing is lost.
func testVersions(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	set := newSet(t, "v1beta1", namespace, `{"reserveOrdinals":[1,"3-5"],"ordinals":{"start":2},"scaleStrategy":{"maxUnavailable":1},
		"volumeClaimUpdateStrategy":{"type":"OnPodRollingUpdate"},"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},
		"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"}}`)
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	before := set.DeepCopy()
	alpha := newSet(t, "v1alpha1", namespace, "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), alpha); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(alpha.Object, int64(3), "spec", "replicas")
	if err := g.Client.Update(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(before.Object, int64(3), "spec", "replicas")
	if diff := cmp.Diff(before.Object["spec"], set.Object["spec"]); diff != "" {
		t.Errorf("an update through v1alpha1 (-want +got):\n%s", diff)
	}
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

// testPolicy has the webhooks review some sets, then removes them and installs the policy, which must decide alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhook", func(t *testing.T) { reviewAll(t, g, namespace, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "statefulset-policy.yaml")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.Withdraw(t)
	reviewtest.Until(t, "the API server does not apply the policy alone", func(ctx context.Context) error {
		plain := newSet(t, "v1beta1", namespace, "")
		if err := g.Client.Create(ctx, plain, client.DryRunAll); err != nil {
			return err
		}
		if reviewtest.Field(plain, "spec", "revisionHistoryLimit") != nil {
			return errors.New("there are defaults")
		}
		return reviewtest.Says(g.Client.Create(ctx, newSet(t, "v1beta1", namespace, `{"updateStrategy":{"type":"x"}}`), client.DryRunAll), "kruisekit-statefulset", "spec.updateStrategy.type")
	})
	t.Run("Policy", func(t *testing.T) { reviewAll(t, g, namespace, "kruisekit-statefulset") })
}

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, namespace, reviewer string) {
	for name, c := range map[string]struct{ version, patch, want string }{
		"nothing is set":       {"v1beta1", ``, ""},
		"nothing, v1alpha1":    {"v1alpha1", ``, ""},
		"a type of pods":       {"v1beta1", `{"updateStrategy":{"type":"ReCreate"}}`, "spec.updateStrategy.type"},
		"an empty type":        {"v1alpha1", `{"updateStrategy":{"type":"","rollingUpdate":{"podUpdatePolicy":""}}}`, ""},
		"OnDelete":             {"v1alpha1", `{"updateStrategy":{"type":"OnDelete"}}`, ""},
		"an unknown policy":    {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"Gently"}}}`, "podUpdatePolicy"},
		"a negative partition": {"v1beta1", `{"updateStrategy":{"rollingUpdate":{"partition":-1}}}`, "spec.updateStrategy.rollingUpdate.partition"},
		"an unknown order":     {"v1beta1", `{"podManagementPolicy":"Sometimes"}`, "spec.podManagementPolicy"},
		"an empty order":       {"v1beta1", `{"podManagementPolicy":""}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := reviewtest.Says(g.Client.Create(t.Context(), newSet(t, c.version, namespace, c.patch), client.DryRunAll), reviewer, c.want); err != nil {
				t.Error(err)
			}
		})
	}
	for name, c := range map[string]struct {
		field string
		value any
		want  string
	}{
		"another selector": {"selector", map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, "spec: "},
		"another service":  {"serviceName", "other", "spec: "},
		"another order":    {"podManagementPolicy", "Parallel", "spec: "},
		"the same order":   {"podManagementPolicy", "OrderedReady", ""},
		"more pods":        {"replicas", int64(4), ""},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, "v1beta1", namespace, "")
			if err := g.Client.Create(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			set.Object["spec"].(map[string]any)[c.field] = c.value
			if err := reviewtest.Says(g.Client.Update(t.Context(), set), reviewer, c.want); err != nil {
				t.Error(err)
			}
		})
	}
}
