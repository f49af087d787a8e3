package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the cache drops of a node is what nobody reads, and no more.
func TestLeanNodes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	want := node.DeepCopy()
	node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"nginx:1"}}}
	options, err := ManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range options.Cache.ByObject {
		got, err := by.Transform(node)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if got, err := lean("a tombstone"); got != "a tombstone" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if len(options.Cache.ByObject) != 1 {
		t.Errorf("%d kinds", len(options.Cache.ByObject))
	}
}
