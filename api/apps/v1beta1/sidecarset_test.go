package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

func TestSidecarSetDefault(t *testing.T) {
	spec := func(change func(*v1beta1.SidecarSetSpec)) v1beta1.SidecarSetSpec {
		s := v1beta1.SidecarSetSpec{
			RevisionHistoryLimit: ptr.To[int32](10),
			UpdateStrategy: v1beta1.SidecarSetUpdateStrategy{
				Type:           v1beta1.RollingUpdateSidecarSetStrategyType,
				Partition:      ptr.To(intstr.FromInt32(0)),
				MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			},
		}
		change(&s)
		return s
	}
	container := func(change func(*v1beta1.SidecarContainer)) []v1beta1.SidecarContainer {
		c := v1beta1.SidecarContainer{
			Container:         corev1.Container{Name: "a"},
			PodInjectPolicy:   v1beta1.BeforeAppContainerType,
			UpgradeStrategy:   v1beta1.SidecarContainerUpgradeStrategy{UpgradeType: v1beta1.SidecarContainerColdUpgrade},
			ShareVolumePolicy: v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumePolicyDisabled},
		}
		change(&c)
		return []v1beta1.SidecarContainer{c}
	}
	bare := func() []v1beta1.SidecarContainer {
		return []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "a"}}}
	}
	cases := map[string]struct {
		why      string
		in, want v1beta1.SidecarSetSpec
	}{
		"empty": {why: "every default is filled", want: spec(func(*v1beta1.SidecarSetSpec) {})},
		"set": {
			why: "what the user wrote stays",
			in: v1beta1.SidecarSetSpec{
				RevisionHistoryLimit: ptr.To[int32](0),
				UpdateStrategy: v1beta1.SidecarSetUpdateStrategy{
					Type:           v1beta1.NotUpdateSidecarSetStrategyType,
					Partition:      ptr.To(intstr.FromString("10%")),
					MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				},
			},
			want: v1beta1.SidecarSetSpec{
				RevisionHistoryLimit: ptr.To[int32](0),
				UpdateStrategy: v1beta1.SidecarSetUpdateStrategy{
					Type:           v1beta1.NotUpdateSidecarSetStrategyType,
					Partition:      ptr.To(intstr.FromString("10%")),
					MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				},
			},
		},
		"containers": {
			why: "an init container goes behind, a container before the pod's own",
			in:  v1beta1.SidecarSetSpec{InitContainers: bare(), Containers: bare()},
			want: spec(func(s *v1beta1.SidecarSetSpec) {
				s.InitContainers = container(func(c *v1beta1.SidecarContainer) {
					c.PodInjectPolicy = v1beta1.AfterAppContainerType
				})
				s.Containers = container(func(*v1beta1.SidecarContainer) {})
			}),
		},
		"transferred env": {
			why: "a field reference is of version v1, and a source without one is survived",
			in: v1beta1.SidecarSetSpec{Containers: []v1beta1.SidecarContainer{{
				Container: corev1.Container{Name: "a"},
				TransferEnv: []v1beta1.TransferEnvVar{
					{SourceContainerNameFrom: &v1beta1.SourceContainerNameSource{}},
					{SourceContainerNameFrom: &v1beta1.SourceContainerNameSource{FieldRef: &corev1.ObjectFieldSelector{}}},
				},
			}}},
			want: spec(func(s *v1beta1.SidecarSetSpec) {
				s.Containers = container(func(c *v1beta1.SidecarContainer) {
					c.TransferEnv = []v1beta1.TransferEnvVar{
						{SourceContainerNameFrom: &v1beta1.SourceContainerNameSource{}},
						{
							SourceContainerNameFrom: &v1beta1.SourceContainerNameSource{
								FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1"},
							},
						},
					}
				})
			}),
		},
		"policies": {
			why: "a policy is filled where there is something that it is of",
			in: v1beta1.SidecarSetSpec{
				PatchPodMetadata:  []v1beta1.SidecarSetPatchPodMetadata{{}, {PatchPolicy: v1beta1.SidecarSetOverwritePatchPolicy}},
				InjectionStrategy: v1beta1.SidecarSetInjectionStrategy{Revision: &v1beta1.SidecarSetInjectRevision{}},
			},
			want: spec(func(s *v1beta1.SidecarSetSpec) {
				s.PatchPodMetadata = []v1beta1.SidecarSetPatchPodMetadata{
					{PatchPolicy: v1beta1.SidecarSetRetainPatchPolicy}, {PatchPolicy: v1beta1.SidecarSetOverwritePatchPolicy},
				}
				s.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{
					Policy: v1beta1.AlwaysSidecarSetInjectRevisionPolicy,
				}
			}),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := v1beta1.SidecarSet{Spec: c.in}
			set.Default()
			if diff := cmp.Diff(c.want, set.Spec); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}
