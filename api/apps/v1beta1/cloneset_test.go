package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

func TestCloneSetDefault(t *testing.T) {
	rolling := func(change func(*v1beta1.RollingUpdateCloneSetStrategy)) v1beta1.CloneSetSpec {
		u := &v1beta1.RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: v1beta1.RecreateCloneSetPodUpdateStrategyType,
			Partition:       ptr.To(intstr.FromInt32(0)),
			MaxUnavailable:  ptr.To(intstr.FromString("20%")),
			MaxSurge:        ptr.To(intstr.FromInt32(0)),
		}
		change(u)
		return v1beta1.CloneSetSpec{
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](10),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdateCloneSetUpdateStrategyType, RollingUpdate: u,
			},
		}
	}
	asIs := func(*v1beta1.RollingUpdateCloneSetStrategy) {}
	cases := map[string]struct {
		why      string
		in, want v1beta1.CloneSetSpec
	}{
		"empty": {why: "every default is filled", want: rolling(asIs)},
		"defaulted": {
			why: "defaulting twice is defaulting once",
			in:  rolling(asIs), want: rolling(asIs),
		},
		"zero replicas": {
			why: "a zero that the user wrote is no absence",
			in: v1beta1.CloneSetSpec{Replicas: ptr.To[int32](0), UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.OnDeleteCloneSetUpdateStrategyType,
			}},
			want: v1beta1.CloneSetSpec{
				Replicas: ptr.To[int32](0), RevisionHistoryLimit: ptr.To[int32](10),
				UpdateStrategy: v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDeleteCloneSetUpdateStrategyType},
			},
		},
		"in place": {
			why: "an in-place policy gets its settings block",
			in: v1beta1.CloneSetSpec{
				UpdateStrategy: v1beta1.CloneSetUpdateStrategy{RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType,
				}},
			},
			want: rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) {
				u.PodUpdatePolicy = v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
				u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{}
			}),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := v1beta1.CloneSet{Spec: c.in}
			set.Default()
			if diff := cmp.Diff(c.want, set.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
