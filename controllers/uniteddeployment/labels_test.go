package uniteddeployment_test

import (
	"testing"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A cloneSetTemplate without labels makes CloneSets with the labels of the selector, and a change makes a revision.
func TestCloneSetTemplateWithoutLabels(t *testing.T) {
	m := newModel(t)
	u := m.create("web", 4, "a,b", func(u *v1beta1.UnitedDeployment) { u.Spec.Template.CloneSetTemplate.Labels = nil })
	m.rest()
	for _, c := range m.children(u) {
		if c.Object.GetLabels()["app"] != "web" || c.Replicas != 2 {
			t.Errorf("%s has the labels %v and %d replicas", c.Object.GetName(), c.Object.GetLabels(), c.Replicas)
		}
	}
	m.change(u, image("web:2"))
	m.rest()
	m.Look(u)
	if u.Status.CurrentRevision != u.Status.UpdatedRevision || u.Status.UpdatedReplicas != 4 {
		t.Errorf("status %+v", u.Status)
	}
	m.Server.Requests()
	m.Reconcile()
	if requests := m.Server.Requests(); len(requests) > 0 {
		t.Errorf("a pass asks %q", requests)
	}
}
