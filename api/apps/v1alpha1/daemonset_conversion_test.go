package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
)

func TestDaemonSetConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.DaemonSet, v1beta1.DaemonSet](t, roundtriptest.Losses{
		Old: []string{
			"/spec/updateStrategy/rollingUpdate/rollingUpdateType", // Surging
		},
		Hub: []string{
			"/spec/scaleStrategy", // present and false
			"/spec/updateStrategy/rollingUpdate/rollingUpdateType",              // Surging is none of this version
			"/metadata/annotations/daemonset.kruise.io~1progressive-create-pod", // beside a field that says otherwise
		},
	},
		func(x *v1beta1.DaemonSetUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, v1beta1.RollingUpdateDaemonSetStrategyType, v1beta1.OnDeleteDaemonSetStrategyType, "", "Unknown")
		},
		func(x *v1beta1.RollingUpdateType, c randfill.Continue) {
			*x = pick(c, v1beta1.StandardRollingUpdateType, v1beta1.InplaceRollingUpdateType,
				v1alpha1.DeprecatedSurgingRollingUpdateType, "", "Unknown")
		},
		func(x *metav1.ObjectMeta, c randfill.Continue) {
			x.Name = c.String(5)
			x.Annotations = pick(c, nil,
				map[string]string{v1alpha1.ProgressiveCreatePod: "true", "other": "kept"},
				map[string]string{v1alpha1.ProgressiveCreatePod: "yes"})
		},
	)
}

func TestDaemonSetConversion(t *testing.T) {
	up := func(t *testing.T, old v1alpha1.DaemonSet) v1beta1.DaemonSet {
		t.Helper()
		hub := v1beta1.DaemonSet{}
		if err := old.ConvertTo(&hub); err != nil {
			t.Fatal(err)
		}
		return hub
	}
	down := func(t *testing.T, hub v1beta1.DaemonSet) v1alpha1.DaemonSet {
		t.Helper()
		old := v1alpha1.DaemonSet{}
		if err := old.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		return old
	}
	progressive := func(value string) v1alpha1.DaemonSet {
		return v1alpha1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.ProgressiveCreatePod: value,
		}}}
	}
	t.Run("the annotation is a field", func(t *testing.T) {
		want := &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
		if diff := cmp.Diff(want, up(t, progressive("true")).Spec.ScaleStrategy); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s := up(t, progressive("True")).Spec.ScaleStrategy; s != nil {
			t.Errorf("another value than true means %+v", s)
		}
	})
	t.Run("the field is an annotation", func(t *testing.T) {
		hub := v1beta1.DaemonSet{
			Spec: v1beta1.DaemonSetSpec{ScaleStrategy: &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}},
		}
		if got := down(t, hub).Annotations[v1alpha1.ProgressiveCreatePod]; got != "true" {
			t.Errorf("the annotation is %q", got)
		}
	})
	t.Run("unsetting the field lasts", func(t *testing.T) {
		hub := up(t, progressive("true"))
		hub.Spec.ScaleStrategy = nil
		if s := up(t, down(t, hub)).Spec.ScaleStrategy; s != nil {
			t.Errorf("the field came back: %+v", s)
		}
	})
	t.Run("Surging is Standard with the numbers as they are", func(t *testing.T) {
		old := v1alpha1.DaemonSet{}
		old.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdateDaemonSet{
			Type: v1alpha1.DeprecatedSurgingRollingUpdateType, MaxSurge: ptr.To(intstr.FromInt32(2)),
		}
		want := &v1beta1.RollingUpdateDaemonSet{
			Type: v1beta1.StandardRollingUpdateType, MaxSurge: ptr.To(intstr.FromInt32(2)),
		}
		if diff := cmp.Diff(want, up(t, old).Spec.UpdateStrategy.RollingUpdate); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("the hash is the update revision", func(t *testing.T) {
		if got := up(t,
			v1alpha1.DaemonSet{Status: v1alpha1.DaemonSetStatus{DaemonSetHash: "5bb7"}}).Status.UpdateRevision; got != "5bb7" {
			t.Errorf("updateRevision is %q", got)
		}
	})
}
