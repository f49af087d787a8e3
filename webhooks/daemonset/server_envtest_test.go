//go:build envtest

package daemonset_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	k := kind()
	t.Run("Manifests", func(t *testing.T) { k.Manifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { k.Mistakes(t, g) })
	t.Run("Recorded", func(t *testing.T) { k.Recorded(t, g) })
	t.Run("Versions", func(t *testing.T) {
		k.Keeps(t, g, `{"scaleStrategy":{"partitionedScaling":true},"burstReplicas":"10%",
			"lifecycle":{"preDelete":{"labelsHandler":{"a":"b"}}},"updateStrategy":{"rollingUpdate":{"maxSurge":"30%","partition":2,"paused":true}}}`, "minReadySeconds")
	})
	t.Run("Policy", func(t *testing.T) {
		k.Policy(t, g, reviewtest.Alone{Defaulted: "revisionHistoryLimit", Bad: `{"minReadySeconds":-1}`, At: "spec.minReadySeconds"}, func(t *testing.T, reviewer string) {
			reviewAll(t, g, reviewer)
		})
		reviewStored(t, g, g.Namespace(t))
	})
}

func kind() reviewtest.Kind { return reviewtest.Kind{Name: "daemonset", New: newSet} }

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

// reviewAll expects refusals by one reviewer, each for its reason.
func reviewAll(t *testing.T, g *reviewtest.Ground, reviewer string) {
	const at = "spec.updateStrategy.rollingUpdate."
	rolling := func(block string) string { return `{"updateStrategy":{"rollingUpdate":` + block + `}}` }
	kind().Creations(t, g, reviewer, map[string]struct{ Version, Patch, Want string }{
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
	})
	kind().Updates(t, g, reviewtest.Updates{Reviewer: reviewer, Cases: map[string]reviewtest.Update{
		"another selector": {Field: "selector", Value: map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "Exists"}}}, Want: "spec: "},
		"another time":     {Field: "minReadySeconds", Value: int64(4)},
		"a worse strategy": {Field: "updateStrategy", Value: map[string]any{"type": "Never"}, Want: "spec.updateStrategy.type"},
	}})
}

// reviewStored updates sets that were stored before the policy, by an API server that is without it for a while: their faults are let pass.
func reviewStored(t *testing.T, g *reviewtest.Ground, namespace string) {
	t.Helper()
	if out, err := g.Kubectl(t.Context(), "delete", "-f", kind().PolicyFile()); err != nil {
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
	kind().ApplyPolicy(t, g)
	reviewtest.Until(t, "the API server does not apply the policy again", func(ctx context.Context) error {
		return kind().Rejects(ctx, g, worst(), "spec.")
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
