package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestUnitedDeploymentDefault(t *testing.T) {
	defaulted := func(subsets ...v1beta1.Subset) v1beta1.UnitedDeploymentSpec {
		return v1beta1.UnitedDeploymentSpec{
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](10),
			UpdateStrategy: v1beta1.UnitedDeploymentUpdateStrategy{
				Type: v1beta1.ManualUpdateStrategyType, ManualUpdate: &v1beta1.ManualUpdate{},
			},
			Topology: v1beta1.Topology{Subsets: subsets},
		}
	}
	subsets := func(subsets ...v1beta1.Subset) v1beta1.UnitedDeploymentSpec {
		return v1beta1.UnitedDeploymentSpec{Topology: v1beta1.Topology{Subsets: subsets}}
	}
	zero, two := ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(2))
	explicit := defaulted()
	explicit.Replicas = ptr.To[int32](0)
	explicit.UpdateStrategy.ManualUpdate.Partitions = map[string]int32{"a": 1}
	cases := map[string]struct {
		why      string
		in, want v1beta1.UnitedDeploymentSpec
	}{
		"empty":     {why: "every default is filled", want: defaulted()},
		"defaulted": {why: "defaulting twice is defaulting once", in: defaulted(), want: defaulted()},
		"explicit":  {why: "what the user wrote stays", in: explicit, want: explicit},
		"a maximum": {
			why: "one bound makes all subsets bounded",
			in:  subsets(v1beta1.Subset{Name: "a", MaxReplicas: two}, v1beta1.Subset{Name: "b"}),
			want: defaulted(v1beta1.Subset{Name: "a", MinReplicas: zero, MaxReplicas: two},
				v1beta1.Subset{Name: "b", MinReplicas: zero}),
		},
		"a minimum": {
			why:  "a minimum that the user wrote stays",
			in:   subsets(v1beta1.Subset{Name: "a", MinReplicas: two}, v1beta1.Subset{Name: "b"}),
			want: defaulted(v1beta1.Subset{Name: "a", MinReplicas: two}, v1beta1.Subset{Name: "b", MinReplicas: zero}),
		},
		"fixed shares": {
			why:  "fixed shares have no bounds",
			in:   subsets(v1beta1.Subset{Name: "a", Replicas: two}, v1beta1.Subset{Name: "b"}),
			want: defaulted(v1beta1.Subset{Name: "a", Replicas: two}, v1beta1.Subset{Name: "b"}),
		},
		"shares and bounds": {
			why:  "validation refuses the two together; defaulting does not add to it",
			in:   subsets(v1beta1.Subset{Name: "a", Replicas: two}, v1beta1.Subset{Name: "b", MaxReplicas: two}),
			want: defaulted(v1beta1.Subset{Name: "a", Replicas: two}, v1beta1.Subset{Name: "b", MaxReplicas: two}),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := v1beta1.UnitedDeployment{Spec: *c.in.DeepCopy()}
			u.Default()
			if diff := cmp.Diff(c.want, u.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
