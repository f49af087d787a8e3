package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// TestUnitedDeploymentDefault asks that both versions default alike.
func TestUnitedDeploymentDefault(t *testing.T) {
	topology := v1beta1.Topology{Subsets: []v1beta1.Subset{
		{Name: "a", MaxReplicas: ptr.To(intstr.FromInt32(2))}, {Name: "b"},
	}}
	old, want, got := v1alpha1.UnitedDeployment{}, v1beta1.UnitedDeployment{}, v1beta1.UnitedDeployment{}
	old.Spec.Topology = *topology.DeepCopy()
	want.Spec.Topology = *topology.DeepCopy()
	old.Default()
	want.Default()
	if err := old.ConvertTo(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
