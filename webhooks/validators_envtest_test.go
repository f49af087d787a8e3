//go:build envtest

package webhooks_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
)

func podStates() entry {
	keys := map[string]string{"v1alpha1": "nodeTopologyKeys", "v1beta1": "keys"}
	return entry{Kind: reviewtest.Kind{
		Name: "PersistentPodState", Bad: `{"requiredPersistentTopology":null,"preferredPersistentTopology":null}`,
		Code: 400, At: []string{"spec"},
		Spec: func(version string) string {
			return `{"targetRef":{"apiVersion":"apps/v1","kind":"StatefulSet","name":"db"},
				"requiredPersistentTopology":{"` + keys[version] + `":["zone"]},
				"preferredPersistentTopology":[{"weight":1,"preference":{"` + keys[version] + `":["host"]}}]}`
		},
	}, own: testTargets}
}

// testTargets: two objects of a namespace have different targets, and a kind of target is in the white list.
func testTargets(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	const again, game = `{"targetRef":{"apiVersion":"apps/v1beta2"}}`,
		`{"targetRef":{"apiVersion":"example.com/v1","name":"game"}}`
	for _, version := range plaintest.Versions() {
		namespace := g.Namespace(t)
		o := k.New(t, version, namespace, "")
		if err := g.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		reviewtest.Refused(t, g.Client.Create(t.Context(), k.New(t, version, namespace, again)), 400, "spec.targetRef")
		if err := g.Client.Create(t.Context(), k.New(t, version, g.Namespace(t), again)); err != nil {
			t.Errorf("another namespace: %v", err)
		}
		k.Updates(t, g, denied, map[string]reviewtest.Update{
			"a target": {Field: "targetRef.apiVersion", Value: "apps/v1beta2", Want: "spec.targetRef"},
		})
		reviewtest.Refused(t, g.Client.Create(t.Context(), k.New(t, version, namespace, game)), 400, "spec.targetRef")
		config := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kruise-configuration"},
			Data: map[string]string{
				"PPS_Watch_Custom_Workload_WhiteList": `{"workloads":[{"Group":"example.com","Version":"v2",
					"Kind":"StatefulSet"}]}`,
			},
		}
		if err := g.Client.Create(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		if err := g.Client.Create(t.Context(), k.New(t, version, namespace, game)); err != nil {
			t.Errorf("a kind of the white list: %v", err)
		}
		if err := g.Client.Delete(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
}

func probeMarkers() entry {
	return entry{
		Kind: reviewtest.Kind{
			Name: "PodProbeMarker", Versions: []string{"v1alpha1"}, Bad: `{"probes":[]}`, Code: 400, At: []string{"spec.probes"},
			Spec: as(`{"selector":{"matchLabels":{"app":"web"}},"probes":[{"name":"a","containerName":"main",
			"podConditionType":"example.com/a","probe":{"exec":{"command":["true"]}}}]}`),
			Refused: map[string][]string{"v1alpha1": {
				"spec.probes[2].probe.httpGet.host",
				"spec.probes[3].probe.tcpSocket.host",
			}},
		}, closed: 403, text: "feature gates PodProbeMarkerGate and KruiseDaemon must be on",
		own: func(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
			const reserved = `{"probes":[{"name":"a","containerName":"main","podConditionType":"Ready",` +
				`"probe":{"exec":{"command":["true"]}}}]}`
			if warnings, err := g.Warnings(t, k.New(t, "v1alpha1", g.Namespace(t), reserved)); err != nil || len(warnings) != 1 {
				t.Errorf("warnings %q, %v", warnings, err)
			}
		},
	}
}

func unavailableBudgets() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "PodUnavailableBudget", Group: "policy.kruise.io", Bad: `{"maxUnavailable":"101%"}`, Code: 400,
		At:   []string{"spec.maxUnavailable"},
		Spec: as(`{"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}`),
	}, own: testOthers, closed: 400, text: "no budget is heeded"}
}

// testOthers: the webhook finds the other budgets of the namespace in its cache.
func testOthers(t *testing.T, k reviewtest.Kind, g *reviewtest.Ground) {
	namespace, elsewhere := g.Namespace(t), g.Namespace(t)
	const target = `{"selector":null,"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"}}`
	for _, patch := range []string{``, target} {
		if err := g.Client.Create(t.Context(), k.New(t, "v1beta1", namespace, patch)); err != nil {
			t.Fatal(err)
		}
	}
	create := func(ctx context.Context, version, namespace, patch string) error {
		return g.Client.Create(ctx, k.New(t, version, namespace, patch), client.DryRunAll)
	}
	for patch, path := range map[string]string{``: "spec.selector", target: "spec.targetReference"} {
		reviewtest.Until(t, "the cache lacks a budget", func(ctx context.Context) error {
			return reviewtest.Says(create(ctx, "v1beta1", namespace, patch), denied, path+": ")
		})
		reviewtest.Refused(t, create(t.Context(), "v1alpha1", namespace, patch), 400, path)
		if err := create(t.Context(), "v1beta1", elsewhere, patch); err != nil {
			t.Errorf("another namespace: %v", err)
		}
	}
	if err := create(t.Context(), "v1beta1", namespace,
		`{"selector":{"matchLabels":{"app":null,"tier":"a"}}}`); err != nil {
		t.Errorf("another key: %v", err)
	}
}

func distributions() entry {
	return entry{Kind: reviewtest.Kind{
		Name: "ResourceDistribution", Cluster: true, Bad: `{"resource":{"kind":"Service"}}`, Code: 422,
		At: []string{"spec.resource"},
		Spec: as(`{"targets":{},"resource":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"pull"},` +
			`"stringData":{"user":"reader"}}}`),
	}, closed: 403, text: "feature gate ResourceDistributionGate is off: nothing would be distributed"}
}
