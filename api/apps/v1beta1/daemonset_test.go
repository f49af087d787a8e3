package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestDaemonSetDefault(t *testing.T) {
	defaulted := func(u v1beta1.DaemonSetUpdateStrategy) v1beta1.DaemonSetSpec {
		return v1beta1.DaemonSetSpec{
			BurstReplicas: ptr.To(intstr.FromInt32(250)), RevisionHistoryLimit: ptr.To[int32](10), UpdateStrategy: u,
		}
	}
	rolling := func(maxUnavailable, maxSurge *intstr.IntOrString) v1beta1.DaemonSetUpdateStrategy {
		return v1beta1.DaemonSetUpdateStrategy{
			Type: v1beta1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &v1beta1.RollingUpdateDaemonSet{
				Type: v1beta1.StandardRollingUpdateType, MaxUnavailable: maxUnavailable, MaxSurge: maxSurge,
			},
		}
	}
	zero, one, half := ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromString("50%"))
	paused := v1beta1.DaemonSetUpdateStrategy{
		Type: v1beta1.OnDeleteDaemonSetStrategyType, RollingUpdate: &v1beta1.RollingUpdateDaemonSet{Paused: ptr.To(true)},
	}
	cases := map[string]struct {
		why      string
		in, want v1beta1.DaemonSetSpec
	}{
		"empty": {why: "every default is filled", want: defaulted(rolling(one, zero))},
		"defaulted": {
			why: "defaulting twice is defaulting once", in: defaulted(rolling(one, zero)), want: defaulted(rolling(one, zero)),
		},
		"surge": {
			why:  "a budget that stands alone leaves the other absent",
			in:   v1beta1.DaemonSetSpec{UpdateStrategy: rolling(nil, half)},
			want: defaulted(rolling(nil, half)),
		},
		"unavailable": {
			why:  "a budget that stands alone leaves the other absent",
			in:   v1beta1.DaemonSetSpec{UpdateStrategy: rolling(half, nil)},
			want: defaulted(rolling(half, nil)),
		},
		"on delete": {
			why:  "settings beside OnDelete stay as they are",
			in:   v1beta1.DaemonSetSpec{UpdateStrategy: paused},
			want: defaulted(paused),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := v1beta1.DaemonSet{Spec: *c.in.DeepCopy()}
			set.Default()
			if diff := cmp.Diff(c.want, set.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
