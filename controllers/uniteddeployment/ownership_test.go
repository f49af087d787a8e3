package uniteddeployment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
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

// An object of the wanted name that belongs to another owner is left alone.
func TestTakenName(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 1, "a", func(u *v1beta1.UnitedDeployment) { u.Spec.Topology.Subsets = nil })
	m.rest()
	m.look(u)
	taken := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: subsets.Name(u, "a", 0)}}
	if err := m.Server.Create(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	m.change(u, topology("a"))
	m.rest()
	if got := m.child(u, "a").Object.GetName(); got != subsets.Name(u, "a", 1) {
		t.Errorf("the workload is %s", got)
	}
	if m.look(taken); len(taken.Labels) > 0 {
		t.Errorf("the object of another was written: %+v", taken.ObjectMeta)
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
