package daemonset_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
)

// A stored set that selects all pods is left as it is, with the event of the built-in DaemonSet.
func TestSelectingAll(t *testing.T) {
	m := newModel(t, 1, daemonset.Options{})
	set := m.create(func(s *v1beta1.DaemonSet) { s.Spec.Selector = &metav1.LabelSelector{} })
	for range 3 {
		m.Reconcile()
	}
	if all, invalid := m.Server.Events(set, "SelectingAll"), m.Server.Events(set, "InvalidSpec"); len(all) != 1 ||
		all[0].Type != "Warning" || len(invalid) != 0 {
		t.Errorf("events %v, %v, want one SelectingAll", all, invalid)
	}
	if pods := m.pods(); len(pods) != 0 {
		t.Errorf("%d pods", len(pods))
	}
	m.change(set, func(s *v1beta1.DaemonSet) { s.Spec.Selector.MatchLabels = map[string]string{"app": "other"} })
	m.Reconcile()
	if invalid := m.Server.Events(set, "InvalidSpec"); len(invalid) != 1 {
		t.Errorf("events %v, want one about a selector that does not match", invalid)
	}
}
