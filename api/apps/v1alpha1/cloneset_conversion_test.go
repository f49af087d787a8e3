package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
	"github.com/kruisekit/kruisekit/api/kruise"
)

func TestCloneSetConversionLosesNothing(t *testing.T) {
	inPlaceOnly := "/spec/updateStrategy/inPlaceUpdateStrategy"
	roundtriptest.Check[v1alpha1.CloneSet, v1beta1.CloneSet](t, roundtriptest.Losses{
		Old: []string{
			"/spec/updateStrategy/*", // of OnDelete, and an unknown type
			inPlaceOnly + "/imagePreDownload*",
			"/metadata/annotations/apps.kruise.io~1image-predownload-*", // not a number
		},
		Hub: []string{
			"/spec/scaleStrategy/excludePreparingDelete",
			"/spec/updateStrategy/type", // an unknown or no type
			"/spec/updateStrategy/rollingUpdate",
			"/spec/updateStrategy/rollingUpdate/podUpdatePolicy",
			"/spec/updateStrategy/rollingUpdate/inPlaceUpdateStrategy",  // present and empty
			"/metadata/annotations/apps.kruise.io~1image-predownload-*", // beside a field that says otherwise
			"/spec/updateStrategy/rollingUpdate/inPlaceUpdateStrategy/*",
		},
	},
		func(x *v1alpha1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, v1alpha1.RecreateCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
				v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, v1alpha1.OnDeleteCloneSetUpdateStrategyType, "", "Unknown")
		},
		func(x *v1beta1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, v1beta1.RollingUpdateCloneSetUpdateStrategyType, v1beta1.OnDeleteCloneSetUpdateStrategyType,
				"", "Unknown")
		},
		func(x *v1beta1.CloneSetPodUpdatePolicyType, c randfill.Continue) {
			*x = pick(c, v1beta1.RecreateCloneSetPodUpdateStrategyType, v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType,
				v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType, "", "Unknown")
		},
		func(x *metav1.ObjectMeta, c randfill.Continue) {
			x.Name = c.String(5)
			x.Annotations = map[string]string{
				kruise.ImagePreDownloadParallelismKey:         pick(c, "1", "10%", ""),
				kruise.ImagePreDownloadTimeoutSecondsKey:      pick(c, "60", "soon"),
				kruise.ImagePreDownloadMinUpdatedReadyPodsKey: pick(c, "3", "50%"),
			}
		},
	)
}

func TestCloneSetConversion(t *testing.T) {
	three := intstr.FromInt32(3)
	up := func(c v1alpha1.CloneSet) v1beta1.CloneSet {
		hub := v1beta1.CloneSet{}
		if err := c.ConvertTo(&hub); err != nil {
			t.Fatal(err)
		}
		return hub
	}
	t.Run("an edit of the hub wins over what was kept", func(t *testing.T) {
		old := v1alpha1.CloneSet{}
		old.Spec.UpdateStrategy = v1alpha1.CloneSetUpdateStrategy{
			Type: v1alpha1.OnDeleteCloneSetUpdateStrategyType, Partition: &three,
		}
		hub := up(old)
		one := intstr.FromInt32(1)
		hub.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{
			Type:          v1beta1.RollingUpdateCloneSetUpdateStrategyType,
			RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{Partition: &one},
		}
		back := v1alpha1.CloneSet{}
		if err := back.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&one, back.Spec.UpdateStrategy.Partition); diff != "" {
			t.Errorf("partition (-want +got):\n%s", diff)
		}
	})
	t.Run("unsetting a pre-download setting lasts", func(t *testing.T) {
		old := v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			kruise.ImagePreDownloadTimeoutSecondsKey: "60",
		}}}
		hub := up(old)
		hub.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = nil
		back := v1alpha1.CloneSet{}
		if err := back.ConvertFrom(&hub); err != nil {
			t.Fatal(err)
		}
		if s := up(back).Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy; s != nil {
			t.Errorf("the setting came back: %+v", s)
		}
	})
	t.Run("claims are reused unless disabled", func(t *testing.T) {
		if hub := up(v1alpha1.CloneSet{}); !hub.Spec.ScaleStrategy.EnablePVCReuse {
			t.Error("enablePVCReuse is false")
		}
	})
}
