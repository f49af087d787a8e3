package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/internal/roundtrip/roundtriptest"
	"github.com/kruisekit/kruisekit/api/kruise"
)

func TestUnitedDeploymentConversionLosesNothing(t *testing.T) {
	cloneSet := "/spec/template/cloneSetTemplate"
	shape := "/metadata/annotations/kruisekit.dev~1cloneset-template-shape"
	preDownload := cloneSet + "/metadata/annotations/apps.kruise.io~1image-predownload-*"
	roundtriptest.Check[v1alpha1.UnitedDeployment, v1beta1.UnitedDeployment](t, roundtriptest.Losses{
		Old: []string{
			shape, // belongs to v1beta1
			// The shape that is not in effect.
			cloneSet + "/spec/updateStrategy/*",
			cloneSet + "/spec/scaleStrategy/disablePVCReuse",
			cloneSet + "/spec/scaleStrategy/enablePVCReuse",
			// What CloneSet itself keeps.
			cloneSet + "/spec/updateStrategy/inPlaceUpdateStrategy/imagePreDownload*",
			cloneSet + "/spec/scaleStrategy/excludePreparingDelete", // the label says it already
			preDownload,
			// Maps that differ from the list.
			"/status/subsetReplicas",
			"/status/subsetReplicas/*",
			"/status/subsetStatuses",
			"/status/subsetStatuses/?/partition",
			"/status/subsetStatuses/?/replicas",
			"/status/updateStatus",
			"/status/updateStatus/currentPartitions",
			"/status/updateStatus/currentPartitions/*",
		},
		Hub: []string{
			shape, // beside another shape
			// What CloneSet itself keeps, and everything beside a type that v1beta1 does not know.
			cloneSet + "/spec/scaleStrategy/enablePVCReuse",
			cloneSet + "/spec/scaleStrategy/excludePreparingDelete",
			cloneSet + "/spec/updateStrategy/type",
			cloneSet + "/spec/updateStrategy/rollingUpdate",
			cloneSet + "/spec/updateStrategy/rollingUpdate/*",
			cloneSet + "/spec/updateStrategy/rollingUpdate/inPlaceUpdateStrategy/*",
			preDownload,
			cloneSet + "/metadata/annotations", // where those of v1alpha1 are the only ones
		},
	}, unitedDeploymentFills()...)
}

func unitedDeploymentFills() []any {
	return []any{
		func(x *v1alpha1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, v1alpha1.RecreateCloneSetUpdateStrategyType, v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType,
				v1alpha1.OnDeleteCloneSetUpdateStrategyType, "RollingUpdate", "", "Unknown")
		},
		func(x *v1beta1.CloneSetUpdateStrategyType, c randfill.Continue) {
			*x = pick(c, v1beta1.RollingUpdateCloneSetUpdateStrategyType, v1beta1.OnDeleteCloneSetUpdateStrategyType,
				"", "ReCreate")
		},
		func(x *v1beta1.CloneSetPodUpdatePolicyType, c randfill.Continue) {
			*x = pick(c, v1beta1.RecreateCloneSetPodUpdateStrategyType, v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType, "")
		},
		func(x *metav1.ObjectMeta, c randfill.Continue) {
			x.Name = c.String(5)
			x.Labels = pick(c, nil, map[string]string{kruise.CloneSetScalingExcludePreparingDeleteKey: "true"})
			x.Annotations = pick(c, nil, map[string]string{v1alpha1.CloneSetTemplateShapeKey: "v1alpha1"}, map[string]string{
				v1alpha1.CloneSetTemplateShapeKey: "", kruise.ImagePreDownloadTimeoutSecondsKey: pick(c, "60", "soon"),
			})
		},
		func(x *v1beta1.UnitedDeploymentSubsetStatus, c randfill.Continue) {
			c.FillNoCustom(x)
			x.Name = pick(c, "a", "b", "c", "")
		},
		func(x *map[string]int32, c randfill.Continue) {
			*x = pick(c, nil, map[string]int32{"a": c.Int31n(9), "": 3}, map[string]int32{"b": c.Int31n(9), "c": 1, "a": 0})
		},
	}
}

func TestUnitedDeploymentStatusConversion(t *testing.T) {
	ready := []v1beta1.UnitedDeploymentSubsetCondition{{Type: v1beta1.UnitedDeploymentSubsetSchedulable, Status: "True"}}
	t.Run("the maps of v1alpha1 win over its list", func(t *testing.T) {
		old, hub := v1alpha1.UnitedDeployment{}, v1beta1.UnitedDeployment{}
		old.Status = v1alpha1.UnitedDeploymentStatus{
			SubsetReplicas: map[string]int32{"a": 5, "c": 1},
			SubsetStatuses: []v1alpha1.UnitedDeploymentSubsetStatus{{
				Name: "a", Replicas: 3, ReadyReplicas: 2, Conditions: ready,
			}},
			UpdateStatus: &v1alpha1.UpdateStatus{UpdatedRevision: "r2", CurrentPartitions: map[string]int32{"a": 2, "c": 3}},
		}
		if err := old.ConvertTo(&hub); err != nil {
			t.Fatal(err)
		}
		want := v1beta1.UnitedDeploymentStatus{
			UpdatedRevision: "r2",
			SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{
				{Name: "a", Replicas: 5, ReadyReplicas: 2, Partition: 2, Conditions: ready}, {Name: "c", Replicas: 1, Partition: 3},
			},
		}
		if diff := cmp.Diff(want, hub.Status); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	cases := map[string]struct {
		why  string
		hub  v1beta1.UnitedDeploymentStatus
		want v1alpha1.UnitedDeploymentStatus
	}{
		"empty": {why: "without subsets and revision there is nothing to tell"},
		"unnamed": {
			why:  "a subset without a name is in no map",
			hub:  v1beta1.UnitedDeploymentStatus{SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{{Replicas: 4}}},
			want: v1alpha1.UnitedDeploymentStatus{UpdateStatus: &v1alpha1.UpdateStatus{}},
		},
		"named": {
			why: "the maps say what the list says",
			hub: v1beta1.UnitedDeploymentStatus{
				UpdatedRevision: "r2", SubsetStatuses: []v1beta1.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 4}},
			},
			want: v1alpha1.UnitedDeploymentStatus{
				SubsetReplicas: map[string]int32{"a": 4},
				UpdateStatus:   &v1alpha1.UpdateStatus{UpdatedRevision: "r2", CurrentPartitions: map[string]int32{"a": 0}},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			old := v1alpha1.UnitedDeployment{}
			if err := old.ConvertFrom(&v1beta1.UnitedDeployment{Status: c.hub}); err != nil {
				t.Fatal(err)
			}
			c.want.SubsetStatuses = c.hub.SubsetStatuses
			if diff := cmp.Diff(c.want, old.Status); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
