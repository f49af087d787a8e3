package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestCloneSetTemplateShape(t *testing.T) {
	two := ptr.To(intstr.FromInt32(2))
	rolling := &v1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromInt32(7))}
	cases := map[string]struct {
		why  string
		in   v1alpha1.SubsetCloneSetSpec
		want v1beta1.CloneSetSpec
	}{
		"nothing": {why: "what says nothing has the shape of v1beta1"},
		"v1alpha1": {
			why: "an in-place type beside its settings",
			in: v1alpha1.SubsetCloneSetSpec{UpdateStrategy: oldStrategy(v1alpha1.CloneSetUpdateStrategy{
				Type: v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, Partition: two, Paused: true,
			})},
			want: v1beta1.CloneSetSpec{
				ScaleStrategy: v1beta1.CloneSetScaleStrategy{EnablePVCReuse: true},
				UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
					Type: v1beta1.RollingUpdateCloneSetUpdateStrategyType,
					RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
						PodUpdatePolicy: v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType, Partition: two, Paused: true,
					},
				},
			},
		},
		"v1alpha1 without type": {
			why: "settings that only v1alpha1 has tell the shape",
			in: v1alpha1.SubsetCloneSetSpec{
				ScaleStrategy: v1alpha1.SubsetCloneSetScaleStrategy{
					CloneSetScaleStrategy: v1alpha1.CloneSetScaleStrategy{DisablePVCReuse: true},
				},
				UpdateStrategy: oldStrategy(v1alpha1.CloneSetUpdateStrategy{MaxSurge: two}),
			},
			want: v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdateCloneSetUpdateStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.RecreateCloneSetPodUpdateStrategyType, MaxSurge: two,
				},
			}},
		},
		"v1beta1": {
			why: "the shape of the reference",
			in: v1alpha1.SubsetCloneSetSpec{UpdateStrategy: v1alpha1.SubsetCloneSetUpdateStrategy{
				CloneSetUpdateStrategy: v1alpha1.CloneSetUpdateStrategy{Type: "RollingUpdate"}, RollingUpdate: rolling,
			}},
			want: v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: "RollingUpdate", RollingUpdate: rolling,
			}},
		},
		"both": {
			why: "the type tells which of two shapes was meant last",
			in: v1alpha1.SubsetCloneSetSpec{UpdateStrategy: v1alpha1.SubsetCloneSetUpdateStrategy{
				CloneSetUpdateStrategy: v1alpha1.CloneSetUpdateStrategy{Type: "RollingUpdate", Partition: two},
				RollingUpdate:          rolling,
			}},
			want: v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: "RollingUpdate", RollingUpdate: rolling,
			}},
		},
		"on delete": {
			why:  "a type of both shapes",
			in:   v1alpha1.SubsetCloneSetSpec{UpdateStrategy: oldStrategy(v1alpha1.CloneSetUpdateStrategy{Type: "OnDelete"})},
			want: v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{Type: "OnDelete"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, unitedDeploymentUp(t, c.in).Spec.Template.CloneSetTemplate.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

// TestCloneSetTemplateKeepsItsShape edits the template in one version and looks at it in the other.
func TestCloneSetTemplateKeepsItsShape(t *testing.T) {
	one, two := ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(2))
	hub := unitedDeploymentUp(t, v1alpha1.SubsetCloneSetSpec{UpdateStrategy: oldStrategy(v1alpha1.CloneSetUpdateStrategy{
		Type: v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType, Partition: two, MaxSurge: two,
	})})
	hub.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy.RollingUpdate.Partition = one
	old := v1alpha1.UnitedDeployment{}
	if err := old.ConvertFrom(&hub); err != nil {
		t.Fatal(err)
	}
	want := oldStrategy(v1alpha1.CloneSetUpdateStrategy{
		Type: v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType, Partition: one, MaxSurge: two,
	})
	if diff := cmp.Diff(want, old.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy); diff != "" {
		t.Errorf("an edit in v1beta1, seen in v1alpha1 (-want +got):\n%s", diff)
	}
	if len(old.Annotations) != 0 {
		t.Errorf("annotations in v1alpha1: %v", old.Annotations)
	}

	old.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy = v1alpha1.SubsetCloneSetUpdateStrategy{
		RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: two},
	}
	again := v1beta1.UnitedDeployment{}
	if err := old.ConvertTo(&again); err != nil {
		t.Fatal(err)
	}
	if len(again.Annotations) != 0 {
		t.Errorf("annotations after a change to the shape of v1beta1: %v", again.Annotations)
	}
}

func oldStrategy(u v1alpha1.CloneSetUpdateStrategy) v1alpha1.SubsetCloneSetUpdateStrategy {
	return v1alpha1.SubsetCloneSetUpdateStrategy{CloneSetUpdateStrategy: u}
}

func unitedDeploymentUp(t *testing.T, spec v1alpha1.SubsetCloneSetSpec) v1beta1.UnitedDeployment {
	t.Helper()
	old, hub := v1alpha1.UnitedDeployment{}, v1beta1.UnitedDeployment{}
	old.Spec.Template.CloneSetTemplate = &v1alpha1.CloneSetTemplateSpec{Spec: spec}
	if err := old.ConvertTo(&hub); err != nil {
		t.Fatal(err)
	}
	return hub
}
