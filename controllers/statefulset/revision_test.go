package statefulset

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Revisions that lost their controller are adopted, also those that are not the template's; those that the selector
// does not match are not.
func TestAdoptRevisions(t *testing.T) {
	m := newModel(t, Options{})
	set := m.create("web", 1)
	m.becomes(set, "0:1")
	m.change(set, withImage("web:2"))
	m.becomes(set, "0:2")
	for _, rev := range m.revisions() {
		before := rev.DeepCopy()
		rev.OwnerReferences = nil
		if rev.Revision == 2 {
			rev.Labels = map[string]string{"app": "another"}
		}
		if err := m.Server.Patch(m.Context(), &rev, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	m.change(set, withImage("web:3"))
	m.eventually(set, func(*v1beta1.StatefulSet) error {
		for _, rev := range m.revisions() {
			adopted := metav1.IsControlledBy(&rev, set)
			if want := rev.Labels["app"] == "web"; adopted != want {
				return fmt.Errorf("revision %d is adopted: %t, want %t", rev.Revision, adopted, want)
			}
		}
		if n := len(m.revisions()); n != 3 {
			return fmt.Errorf("%d revisions, want 3", n)
		}
		return nil
	})
	m.becomes(set, "0:3")
	m.Idle()
}
