//go:build envtest

package daemonset_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/plaintest"
	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/daemonset"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"daemonsets"},
		Setup: func(mgr ctrl.Manager, api client.Client) error {
			mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
			w, err := daemonset.New(api, daemonset.Options{})
			if err != nil {
				return err
			}
			return w.SetupWithManager(mgr)
		},
		Bad: newSet(t, "v1beta1", "default", `{"minReadySeconds":-1}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Versions", func(t *testing.T) { testVersions(t, g) })
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

// newSet is a DaemonSet of one container whose spec is changed by a merge patch.
func newSet(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{}
	if err := set.UnmarshalJSON([]byte(object(t, version, patch))); err != nil {
		t.Fatal(err)
	}
	set.SetNamespace(namespace)
	set.SetName("")
	set.SetGenerateName("agent-")
	return set
}

// testManifests applies the manifests of the reference's API unchanged, and once more as an update of something else.
func testManifests(t *testing.T, g *reviewtest.Ground) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		namespace := g.Namespace(t)
		for _, set := range reviewtest.Manifests(t, version, "daemonsets.yaml") {
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
	for _, m := range reviewtest.Mistakes(t, "daemonsets.yaml") {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if m.Version != "" && m.Version != version {
				continue
			}
			t.Run(m.Why+"/"+version, func(t *testing.T) {
				for _, set := range reviewtest.Manifests(t, version, "daemonsets.yaml") {
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

// testRecorded creates what the reference has defaulted: there is nothing left to add, so that a set that is taken over differs from its
// revisions in nothing.
func testRecorded(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, recorded := range reviewtest.Recorded(t, "1-created", "daemonsets."+version+".yaml") {
			set := newSet(t, version, namespace, "")
			set.Object["spec"] = recorded.DeepCopy().Object["spec"]
			if err := g.Client.Create(t.Context(), set); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(plaintest.Encode(t, recorded.Object["spec"]), plaintest.Encode(t, set.Object["spec"])); diff != "" {
				t.Errorf("%s, %s (-recorded +now):\n%s", version, recorded.GetName(), diff)
			}
		}
	}
}

// testVersions writes a set of the newer version through the older one, as old clients do: nothing is lost.
func testVersions(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	set := newSet(t, "v1beta1", namespace, `{"scaleStrategy":{"partitionedScaling":true},"burstReplicas":"10%",
		"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},"updateStrategy":{"rollingUpdate":{"maxSurge":"30%","partition":2,"paused":true}}}`)
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	before := set.DeepCopy()
	alpha := newSet(t, "v1alpha1", namespace, "")
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), alpha); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(alpha.Object, int64(3), "spec", "minReadySeconds")
	if err := g.Client.Update(t.Context(), alpha); err != nil {
		t.Fatal(err)
	}
	if err := g.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(before.Object, int64(3), "spec", "minReadySeconds")
	if diff := cmp.Diff(before.Object["spec"], set.Object["spec"]); diff != "" {
		t.Errorf("an update through v1alpha1 (-want +got):\n%s", diff)
	}
}

// testPolicy has the webhooks review some sets, then removes them and installs the policy, which must decide alike.
func testPolicy(t *testing.T, g *reviewtest.Ground) {
	namespace := g.Namespace(t)
	t.Run("Webhook", func(t *testing.T) { reviewAll(t, g, namespace, "denied the request") })
	if out, err := g.Kubectl(t.Context(), "apply", "-f", filepath.Join("..", "..", "config", "webhook", "daemonset-policy.yaml")); err != nil {
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
		return reviewtest.Says(g.Client.Create(ctx, newSet(t, "v1beta1", namespace, `{"minReadySeconds":-1}`), client.DryRunAll), "kruisekit-daemonset", "spec.minReadySeconds")
	})
	t.Run("Policy", func(t *testing.T) {
		reviewAll(t, g, namespace, "kruisekit-daemonset")
		reviewStored(t, g, namespace)
	})
}

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, namespace, reviewer string) {
	const at = "spec.updateStrategy.rollingUpdate."
	rolling := func(block string) string { return `{"updateStrategy":{"rollingUpdate":` + block + `}}` }
	for name, c := range map[string]struct{ version, patch, want string }{
		"nothing is set":                  {"v1beta1", ``, ""},
		"nothing, v1alpha1":               {"v1alpha1", ``, ""},
		"a negative time":                 {"v1alpha1", `{"minReadySeconds":-1}`, "spec.minReadySeconds"},
		"a negative limit":                {"v1beta1", `{"revisionHistoryLimit":-1}`, "spec.revisionHistoryLimit"},
		"a hook around updates in place":  {"v1beta1", `{"lifecycle":{"inPlaceUpdate":{}}}`, "spec.lifecycle.inPlaceUpdate"},
		"a hook before deletion":          {"v1alpha1", `{"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}}}`, ""},
		"a burst of nothing":              {"v1beta1", `{"burstReplicas":0}`, "spec.burstReplicas"},
		"a burst of no share":             {"v1beta1", `{"burstReplicas":"0%"}`, "spec.burstReplicas"},
		"a burst of nonsense":             {"v1alpha1", `{"burstReplicas":"x"}`, "spec.burstReplicas"},
		"a burst beyond all":              {"v1beta1", `{"burstReplicas":"150%"}`, ""},
		"a small burst":                   {"v1beta1", `{"burstReplicas":"0.01%"}`, ""},
		"an unknown strategy":             {"v1beta1", `{"updateStrategy":{"type":"Never"}}`, "spec.updateStrategy.type"},
		"empty types":                     {"v1alpha1", `{"updateStrategy":{"type":"","rollingUpdate":{"rollingUpdateType":""}}}`, ""},
		"OnDelete takes the block as is":  {"v1beta1", `{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"maxUnavailable":"x"}}}`, ""},
		"an unknown update":               {"v1alpha1", rolling(`{"rollingUpdateType":"Gently"}`), at + "rollingUpdateType"},
		"Surging of v1alpha1":             {"v1alpha1", rolling(`{"rollingUpdateType":"Surging"}`), ""},
		"Surging of v1beta1":              {"v1beta1", rolling(`{"rollingUpdateType":"Surging"}`), at + "rollingUpdateType"},
		"Surging with one unavailable":    {"v1alpha1", rolling(`{"rollingUpdateType":"Surging","maxUnavailable":1}`), at + "maxSurge"},
		"a surge alone":                   {"v1beta1", rolling(`{"maxSurge":"50%"}`), ""},
		"both bounds":                     {"v1beta1", rolling(`{"maxSurge":1,"maxUnavailable":"1%"}`), at + "maxSurge"},
		"neither bound":                   {"v1beta1", rolling(`{"maxSurge":"0%","maxUnavailable":0}`), at + "maxUnavailable"},
		"no bound alone":                  {"v1alpha1", rolling(`{"maxUnavailable":0}`), at + "maxUnavailable"},
		"a bound beyond all nodes":        {"v1beta1", rolling(`{"maxUnavailable":"100.5%"}`), at + "maxUnavailable"},
		"a bound of all nodes":            {"v1beta1", rolling(`{"maxUnavailable":"+100%"}`), ""},
		"a number beyond all nodes":       {"v1beta1", rolling(`{"maxUnavailable":5000}`), ""},
		"nonsense beside a bound":         {"v1beta1", rolling(`{"maxUnavailable":1,"maxSurge":"1"}`), at + "maxSurge"},
		"a surge in place":                {"v1beta1", rolling(`{"rollingUpdateType":"InPlaceIfPossible","maxSurge":1}`), at + "maxSurge"},
		"in place":                        {"v1beta1", rolling(`{"rollingUpdateType":"InPlaceIfPossible","maxSurge":0,"maxUnavailable":2}`), ""},
		"a negative partition":            {"v1beta1", rolling(`{"partition":-1}`), at + "partition"},
		"a partition of a negative share": {"v1beta1", rolling(`{"partition":"-0.1%"}`), at + "partition"},
		"a partition of minus nothing":    {"v1beta1", rolling(`{"partition":"-0%"}`), ""},
		"a partition of a dot":            {"v1beta1", rolling(`{"partition":".%"}`), at + "partition"},
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
		"another time":     {"minReadySeconds", int64(4), ""},
		"a worse strategy": {"updateStrategy", map[string]any{"type": "Never"}, "spec.updateStrategy.type"},
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

// reviewStored updates sets that were stored before the policy, by an API server that is without it for a while: their faults are let pass.
func reviewStored(t *testing.T, g *reviewtest.Ground, namespace string) {
	t.Helper()
	file := filepath.Join("..", "..", "config", "webhook", "daemonset-policy.yaml")
	if out, err := g.Kubectl(t.Context(), "delete", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	worst := func() *unstructured.Unstructured {
		return newSet(t, "v1beta1", namespace, `{"minReadySeconds":-1,"revisionHistoryLimit":-1,"burstReplicas":"x","lifecycle":{"inPlaceUpdate":{}},
			"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"Gently","maxUnavailable":1,"maxSurge":1,"partition":"x"}}}`)
	}
	both := newSet(t, "v1beta1", namespace, `{"updateStrategy":{"rollingUpdate":{"rollingUpdateType":"InPlaceIfPossible","maxUnavailable":0,"maxSurge":"5%"}}}`)
	neither := newSet(t, "v1beta1", namespace, `{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0}}}`)
	set := worst()
	reviewtest.Until(t, "the API server still applies the policy", func(ctx context.Context) error { return g.Client.Create(ctx, set) })
	for _, other := range []*unstructured.Unstructured{both, neither} {
		if err := g.Client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := g.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	reviewtest.Until(t, "the API server does not apply the policy again", func(ctx context.Context) error {
		return reviewtest.Says(g.Client.Create(ctx, worst(), client.DryRunAll), "kruisekit-daemonset", "spec.")
	})
	for _, stored := range []*unstructured.Unstructured{set, both, neither} {
		stored.SetLabels(map[string]string{"touched": "true"})
		if err := g.Client.Update(t.Context(), stored); err != nil {
			t.Errorf("a stored fault is not let pass: %v", err)
		}
	}
	_ = unstructured.SetNestedField(set.Object, "y", "spec", "burstReplicas")
	if err := reviewtest.Says(g.Client.Update(t.Context(), set), "kruisekit-daemonset", "spec.burstReplicas"); err != nil {
		t.Errorf("a new fault beside stored ones: %v", err)
	}
}
