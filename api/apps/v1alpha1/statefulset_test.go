package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// TestStatefulSetDefault asks that both versions default alike, but for what only v1beta1 has.
func TestStatefulSetDefault(t *testing.T) {
	old, want, got := v1alpha1.StatefulSet{}, v1beta1.StatefulSet{}, v1beta1.StatefulSet{}
	want.Default()
	want.Spec.PersistentVolumeClaimRetentionPolicy = nil
	old.Default()
	if err := old.ConvertTo(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
