//go:build envtest

package pod_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// A follower steers pods as the leader does. Pods of ReplicaSets are never sent, and those with a required topology are
// not created while no replica answers.
func testPlace(t *testing.T, g *ground) {
	g.lead(t)
	g.stop()
	g.follows = true
	g.serve(t)
	defer func() {
		g.follows = false
		g.serve(t)
	}()
	defer g.stop()
	g.until(t, "the follower is not ready", func(ctx context.Context) error {
		return g.webhook.Ready((&http.Request{}).WithContext(ctx))
	})
	if err := g.Client.DeleteAllOf(t.Context(), &appsv1beta1.SidecarSet{}); err != nil { // those of other tests
		t.Fatal(err)
	}
	namespace := g.Namespace(t)
	state := &appsv1beta1.PersistentPodState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}
	state.Spec.TargetReference = appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}
	state.Spec.RequiredPersistentTopology = &appsv1beta1.NodeTopologyTerm{Keys: []string{"zone"}}
	if err := g.Client.Create(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(state)
	if err != nil {
		t.Fatal(err)
	}
	state.Status.PodStates = map[string]appsv1beta1.PodState{"db-0": {
		NodeName: "n1", NodeTopologyLabels: map[string]string{"zone": "a"},
	}}
	if err := g.Client.Status().Update(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	computed := scope.Plan(scope.Input{
		Namespace:     pod.DefaultNamespace,
		Contributions: []scope.Contribution{scope.States().Contribute([]*unstructured.Unstructured{{Object: content}})},
		Client: admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To(fmt.Sprintf("https://%s:%d%s", g.install.LocalServingHost, g.install.LocalServingPort, pod.Path)),
			CABundle: g.install.LocalServingCAData,
		},
	})
	if len(computed.Entries) != 1 {
		t.Fatalf("%d entries", len(computed.Entries))
	}
	g.config.Webhooks = computed.Entries
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, name, owner string) (*corev1.Pod, error) {
		p := newPod(t, namespace, plain)
		p.Name = name
		kind := "StatefulSet"
		if owner == "web" {
			kind = "ReplicaSet"
		}
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: kind, Name: owner, UID: "set", Controller: ptr.To(true),
		}}
		return p, g.Client.Create(ctx, p, client.DryRunAll)
	}
	g.until(t, "the pod is not steered", func(ctx context.Context) error {
		p, err := create(ctx, "db-0", "db")
		if err == nil && p.Spec.NodeSelector["zone"] != "a" {
			err = fmt.Errorf("it selects %v", p.Spec.NodeSelector)
		}
		return err
	})
	g.took()
	for name, owner := range map[string]string{"db-1": "db", "web-0": "web"} {
		p, err := create(t.Context(), name, owner)
		if err != nil || p.Spec.NodeSelector != nil {
			t.Errorf("%s of %s: %v, %v", name, owner, p.Spec.NodeSelector, err)
		}
	}
	if calls, _ := g.took(); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	g.stop()
	if _, err := create(t.Context(), "db-0", "db"); err == nil {
		t.Error("a pod was created while no replica answers")
	}
	if _, err := create(t.Context(), "web-0", "web"); err != nil {
		t.Errorf("another workload: %v", err)
	}
	g.config.Webhooks = nil
	if err := g.Client.Update(t.Context(), g.config); err != nil {
		t.Fatal(err)
	}
}
