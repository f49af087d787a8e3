package workloadspread

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestCostsFirst: observedGeneration promises that the costs of the generation stand, so that a scale-in after it
// deletes the right pods.
func TestCostsFirst(t *testing.T) {
	c, r := newCluster(t)
	c.put(spreadOf(1, -1), cloneSet(), spreadPod("p1", "a"), spreadPod("p2", "a"))
	if diff := cmp.Diff([]string{"PATCH pods/p1 200", "PATCH pods/p2 200", "PATCH workloadspreads/spread/status 200"},
		c.reconcile(r)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if ws := c.spread(); ws.Status.ObservedGeneration != ws.Generation {
		t.Errorf("generation %d is observed", ws.Status.ObservedGeneration)
	}
}

// TestCostsRefused: a pod whose cost cannot be written keeps no other pod from its cost and no counter from the status,
// but the generation is not observed.
func TestCostsRefused(t *testing.T) {
	c, r := newCluster(t)
	r.api.Client = refused{r.api.Client, "p1"}
	c.put(spreadOf(1, -1), cloneSet(), spreadPod("p1", "a"), spreadPod("p2", "a"))
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "spread"}}
	for range 2 {
		c.show(r)
		if _, err := r.Reconcile(t.Context(), request); err == nil || !strings.Contains(err.Error(), "p1") {
			t.Errorf("the error is %v", err)
		}
	}
	writes := 0
	for _, request := range c.Requests() {
		if !strings.HasPrefix(request, "GET") {
			writes++
		}
	}
	ws, pod := c.spread(), &corev1.Pod{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "p2"}, pod); err != nil {
		t.Fatal(err)
	}
	if pod.Annotations[corev1.PodDeletionCost] == "" || writes != 2 {
		t.Errorf("p2 has the annotations %v after %d writes", pod.Annotations, writes)
	}
	if e := ws.Status.SubsetStatuses; len(e) != 2 || e[0].Replicas != 2 || ws.Status.ObservedGeneration == ws.Generation {
		t.Errorf("status %+v", ws.Status)
	}
	r.api.Client = c
	c.show(r)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if ws := c.spread(); ws.Status.ObservedGeneration != ws.Generation {
		t.Errorf("generation %d is observed", ws.Status.ObservedGeneration)
	}
}
