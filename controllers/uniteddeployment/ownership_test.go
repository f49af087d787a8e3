package uniteddeployment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A workload that loses its labels keeps its subset and its pods, and gets the labels back.
func TestLostLabels(t *testing.T) {
	for _, kind := range []string{"CloneSet", "Deployment"} {
		m := newModel(t)
		u := m.create("web", 4, "a,b", of(kind))
		m.rest()
		before := m.child(u, "a").Object.DeepCopy()
		after := before.DeepCopy()
		after.SetLabels(map[string]string{"app": "web"})
		if err := m.Server.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		m.Server.Requests()
		m.pass(time.Minute)
		c := m.child(u, "a")
		if diff := cmp.Diff(before.GetLabels(), c.Object.GetLabels()); diff != "" || c.Object.GetUID() != before.GetUID() {
			t.Errorf("%s: uid %s, labels (-want +got):\n%s", kind, c.Object.GetUID(), diff)
		}
		m.expect(u, "a 2 [1 1], b 2 [1 1]")
	}
}

// Deletion is left to garbage collection.
func TestDeletion(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a", func(u *v1beta1.UnitedDeployment) { u.Finalizers = []string{"test.kruisekit.dev/keep"} })
	m.rest()
	if err := m.Server.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	m.change(u, scaled(5))
	m.Server.Requests()
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("a deleted object asks for %q", requests)
	}
}
