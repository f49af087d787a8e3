package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestStatefulSetDefault(t *testing.T) {
	defaulted := func(change func(*v1beta1.StatefulSetSpec)) v1beta1.StatefulSetSpec {
		spec := v1beta1.StatefulSetSpec{
			Replicas:             ptr.To[int32](1),
			RevisionHistoryLimit: ptr.To[int32](10),
			PodManagementPolicy:  appsv1.OrderedReadyPodManagement,
			PersistentVolumeClaimRetentionPolicy: &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: v1beta1.RetainPersistentVolumeClaimRetentionPolicyType,
				WhenScaled:  v1beta1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
					Partition:       ptr.To[int32](0),
					MaxUnavailable:  ptr.To(intstr.FromInt32(1)),
					PodUpdatePolicy: v1beta1.RecreatePodUpdateStrategyType,
					MinReadySeconds: ptr.To[int32](0),
				},
			},
		}
		change(&spec)
		return spec
	}
	asIs := func(*v1beta1.StatefulSetSpec) {}
	onDelete := v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	inPlace := func(s *v1beta1.StatefulSetSpec) {
		s.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossiblePodUpdateStrategyType
	}
	cases := map[string]struct {
		why      string
		in, want v1beta1.StatefulSetSpec
	}{
		"empty":     {why: "every default is filled", want: defaulted(asIs)},
		"defaulted": {why: "defaulting twice is defaulting once", in: defaulted(asIs), want: defaulted(asIs)},
		"on delete": {
			why:  "a rolling update that does not happen has no settings",
			in:   v1beta1.StatefulSetSpec{UpdateStrategy: onDelete},
			want: defaulted(func(s *v1beta1.StatefulSetSpec) { s.UpdateStrategy = onDelete }),
		},
		"in place": {
			why:  "the settings of in-place updates stay absent",
			in:   defaulted(inPlace),
			want: defaulted(inPlace),
		},
		"half a retention policy": {
			why: "the other half is Retain",
			in: v1beta1.StatefulSetSpec{
				PersistentVolumeClaimRetentionPolicy: &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
					WhenScaled: v1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
				},
			},
			want: defaulted(func(s *v1beta1.StatefulSetSpec) {
				s.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
			}),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := v1beta1.StatefulSet{Spec: c.in}
			set.Default()
			if diff := cmp.Diff(c.want, set.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
