package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
)

func TestDaemonSetDefault(t *testing.T) {
	cases := map[string]struct {
		why      string
		in, want *v1alpha1.RollingUpdateDaemonSet
	}{
		"empty": {
			why: "every default is filled",
			want: &v1alpha1.RollingUpdateDaemonSet{
				Type:           v1alpha1.StandardRollingUpdateType,
				MaxUnavailable: ptr.To(intstr.FromInt32(1)), MaxSurge: ptr.To(intstr.FromInt32(0)),
			},
		},
		"surging": {
			why: "the deprecated type is Standard with surge",
			in:  &v1alpha1.RollingUpdateDaemonSet{Type: v1alpha1.DeprecatedSurgingRollingUpdateType},
			want: &v1alpha1.RollingUpdateDaemonSet{
				Type:           v1alpha1.StandardRollingUpdateType,
				MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
			},
		},
		"surging with a number": {
			why: "the number that the user wrote stays",
			in: &v1alpha1.RollingUpdateDaemonSet{
				Type: v1alpha1.DeprecatedSurgingRollingUpdateType, MaxSurge: ptr.To(intstr.FromString("30%")),
			},
			want: &v1alpha1.RollingUpdateDaemonSet{
				Type:           v1alpha1.StandardRollingUpdateType,
				MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromString("30%")),
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := v1alpha1.DaemonSet{}
			set.Spec.UpdateStrategy.RollingUpdate = c.in
			set.Default()
			want := v1alpha1.DaemonSetSpec{
				BurstReplicas: ptr.To(intstr.FromInt32(250)), RevisionHistoryLimit: ptr.To[int32](10),
				UpdateStrategy: v1alpha1.DaemonSetUpdateStrategy{
					Type: v1alpha1.RollingUpdateDaemonSetStrategyType, RollingUpdate: c.want,
				},
			}
			if diff := cmp.Diff(want, set.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
