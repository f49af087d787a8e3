package v1alpha1_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
	"github.com/kruisekit/kruisekit/api/kruise"
)

func TestStatefulSetConversionLosesNothing(t *testing.T) {
	roundtriptest.Check[v1alpha1.StatefulSet, v1beta1.StatefulSet](t, roundtriptest.Losses{
		Hub: []string{
			"/spec/lifecycle",
			"/spec/ordinals",
			"/spec/persistentVolumeClaimRetentionPolicy",
			"/spec/reserveOrdinals",
			"/spec/scaleStrategy",
			"/spec/volumeClaimUpdateStrategy/type",
			"/status/updatedAvailableReplicas",
			"/status/updatedReadyReplicas",
			"/status/volumeClaims",
		},
	},
		func(x *appsv1.StatefulSetUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType, "", "Unknown")
		},
		func(x *v1beta1.PodUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, v1beta1.RecreatePodUpdateStrategyType, v1beta1.InPlaceIfPossiblePodUpdateStrategyType,
				v1beta1.InPlaceOnlyPodUpdateStrategyType, "", "Unknown")
		},
	)
}

func TestStatefulSetConversion(t *testing.T) {
	hub := v1beta1.StatefulSet{}
	hub.Spec.Replicas = ptr.To[int32](3)
	hub.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1), intstr.FromString("3-5")}
	hub.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 2}
	hub.Status.UpdatedReadyReplicas = 2

	edited := func(t *testing.T, edit func(*v1alpha1.StatefulSet)) v1beta1.StatefulSet {
		t.Helper()
		old, back := v1alpha1.StatefulSet{}, v1beta1.StatefulSet{}
		if err := old.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		edit(&old)
		if err := old.ConvertTo(&back); err != nil {
			t.Fatal(err)
		}
		return back
	}
	t.Run("a write through v1alpha1 erases nothing", func(t *testing.T) {
		want := *hub.DeepCopy()
		want.Spec.Replicas = ptr.To[int32](5)
		got := edited(t, func(old *v1alpha1.StatefulSet) { old.Spec.Replicas = ptr.To[int32](5) })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a new image leaves the rest", func(t *testing.T) {
		got := edited(t, func(old *v1alpha1.StatefulSet) {
			old.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "new"}}
		})
		if diff := cmp.Diff(hub.Spec.ReserveOrdinals, got.Spec.ReserveOrdinals); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("an empty unorderedUpdate is not the same as none", func(t *testing.T) {
		got := edited(t, func(old *v1alpha1.StatefulSet) {
			old.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdateStatefulSetStrategy{
				UnorderedUpdate: &v1alpha1.UnorderedUpdateStrategy{},
			}
		})
		if got.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate == nil {
			t.Error("unorderedUpdate is nil")
		}
	})
}

// A version shows what is stored: admission, a diff and an audit log that read v1alpha1 see the image app:1.
func TestKeptDataChangesNothingThatIsShown(t *testing.T) {
	sum := sha256.Sum256([]byte(`"app:1"`))
	set := &v1alpha1.StatefulSet{}
	set.Annotations = map[string]string{kruise.ConversionDataKey: `{"v1beta1":[` +
		`{"path":"/spec/template/spec/containers/0/image","was":"` + hex.EncodeToString(sum[:8]) + `","is":"miner:1"},` +
		`{"path":"/spec/template/spec/hostPID","is":true},{"path":"/metadata/labels/policy","is":"exempt"},` +
		`{"path":"/spec/reserveOrdinals","is":[1]}]}`}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	hub := &v1beta1.StatefulSet{}
	if err := set.ConvertTo(hub); err != nil {
		t.Fatal(err)
	}
	spec := hub.Spec.Template.Spec
	if spec.Containers[0].Image != "app:1" || spec.HostPID || len(hub.Labels) > 0 {
		t.Errorf("shown as app:1, stored as %s, hostPID %t, labels %v", spec.Containers[0].Image, spec.HostPID, hub.Labels)
	}
	if len(hub.Spec.ReserveOrdinals) != 1 {
		t.Error("a field that v1alpha1 does not have was not restored")
	}
}
