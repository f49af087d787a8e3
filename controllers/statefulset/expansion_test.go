package statefulset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// growing has claims of 2Gi, expanded with their pods.
func growing(s *v1beta1.StatefulSet) {
	withClaims(keeps, keeps)(s)
	s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("2Gi")}
	s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
}

// grows is a claim of 2Gi whose volume has 1Gi. Its file system waits for a mount since a time, unless that is zero.
func grows(pod string, since time.Time) *corev1.PersistentVolumeClaim {
	claim := claimOf(pod, "2Gi")
	claim.Status.Capacity = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	if !since.IsZero() {
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
			Type:               corev1.PersistentVolumeClaimFileSystemResizePending,
			Status:             corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(since),
		}}
	}
	return claim
}

func unbound(pod string) *corev1.PersistentVolumeClaim {
	claim := claimOf(pod, "1Gi")
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	return claim
}

func inClass(name string, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.Spec.StorageClassName = &name
	return claim
}

// Claims grow with the turn of their pod, within the partition and the budget, before the pod is updated.
func TestPlanExpansion(t *testing.T) {
	on := Options{ExpandClaims: true}
	three := func(image string) []*corev1.Pod { return mounting(several(image, 0, 1, 2)...) }
	small := func() []*corev1.PersistentVolumeClaim {
		return []*corev1.PersistentVolumeClaim{claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi"), claimOf("web-2", "1Gi")}
	}
	with := func(of ...*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
		all := small()
		for _, claim := range of {
			for i := range all {
				if all[i].Name == claim.Name {
					all[i] = claim
				}
			}
		}
		return all
	}
	noon := podtest.Noon()
	old := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-24 * time.Hour)) }
	aged := func(pods []*corev1.Pod) []*corev1.Pod {
		for _, p := range pods {
			old(p)
		}
		return pods
	}
	checkPlans(t, map[string]planCase{
		"claims alone": {
			why:      "the claim of the last pod grows, and no pod changes",
			options:  on,
			replicas: 3,
			set:      changes{growing},
			pods:     three("web:1"),
			claims:   small(),
			want:     []string{"patch data-web-2 of []"},
		},
		"two at a time": {
			"as many as may be unavailable", on, 3,
			changes{growing, parallel, maxUnavailable(2)},
			three("web:1"), small(),
			[]string{"patch data-web-2 of []", "patch data-web-1 of []"},
			0,
		},
		"gate off": {"claims stay", Options{}, 3, changes{growing}, three("web:1"), small(), nil, 0},
		"on delete": {"claims stay", on, 3, changes{growing, func(s *v1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
		}}, three("web:1"), small(), nil, 0},
		"partition": {
			why:      "pods below keep their claims",
			options:  on,
			replicas: 3,
			set:      changes{growing, partition(3)},
			pods:     three("web:1"),
			claims:   small(),
		},
		"paused": {"nothing grows", on, 3, changes{growing, paused}, three("web:1"), small(), nil, 0},
		"before the pod": {
			why:      "the pod waits for its claim",
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2"), inPlace},
			pods:     three("web:1"),
			claims:   small(),
			want:     []string{"patch data-web-2 of []"},
		},
		"growing": {
			why:      "the volume spends the budget",
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2"), inPlace},
			pods:     three("web:1"),
			claims:   with(grows("web-2", time.Time{})),
		},
		"grown": {
			why:      "the pod follows its claim",
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2"), inPlace},
			pods:     three("web:1"),
			claims:   with(claimOf("web-2", "2Gi")),
			want:     []string{"take web-2 out of traffic", "update web-2 to web:2"},
		},
		"mounts with the pod": {
			why:      "a recreated pod mounts it again",
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2")},
			pods:     three("web:1"),
			claims:   with(grows("web-2", noon)),
			want:     []string{"delete web-2"},
		},
		"a pod of a lower ordinal waits for its mount": {
			why:      "it goes first, because it spends the budget",
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2")},
			pods:     three("web:1"),
			claims:   with(grows("web-0", noon)),
			want:     []string{"delete web-0"},
		},
		"remount": {
			why:      "a pod is recreated where its node does not grow the file system",
			options:  on,
			replicas: 3,
			set:      changes{growing},
			pods:     aged(three("web:1")),
			claims:   with(claimOf("web-2", "2Gi"), claimOf("web-1", "2Gi"), grows("web-0", noon.Add(-time.Hour))),
			want:     []string{"delete web-0"},
		},
		"remount, partition": {
			why:      "a pod below the partition stays",
			options:  on,
			replicas: 3,
			set:      changes{growing, partition(1)},
			pods:     aged(three("web:1")),
			claims:   with(claimOf("web-2", "2Gi"), claimOf("web-1", "2Gi"), grows("web-0", noon.Add(-time.Hour))),
		},
		"larger": {
			why:      "claims do not shrink",
			options:  on,
			replicas: 3,
			set:      changes{growing},
			pods:     three("web:1"),
			claims:   with(claimOf("web-0", "3Gi"), claimOf("web-1", "3Gi"), claimOf("web-2", "3Gi")),
		},
		"terminating": {
			why:      "a claim that goes is left alone",
			options:  on,
			replicas: 1,
			set:      changes{growing},
			pods:     mounting(several("web:1", 0)...),
		},
		"not bound": {
			why:      "until then the API server forbids that it grows, and the pod may need its update to bind it",
			options:  on,
			replicas: 3,
			set:      changes{growing, parallel, withImage("web:2")},
			pods:     mounting(pod("web-0", "web:1"), pod("web-1", "web:1"), pod("web-2", "web:1", podtest.NotReady)),
			claims:   with(unbound("web-2")),
			want:     []string{"delete web-2"},
		},
		"unavailable pods first": {
			why:      "the budget is spent by a pod that is not ready",
			options:  on,
			replicas: 3,
			set:      changes{growing, parallel},
			pods:     mounting(pod("web-0", "web:1", podtest.NotReady), pod("web-1", "web:1"), pod("web-2", "web:1")),
			claims:   small(),
		},
	})
}

// A claim that cannot grow is reported, and keeps no other pod from its turn.
func TestRefusedExpansion(t *testing.T) {
	o := observe(t, 2, growing, parallel, inPlace, withImage("web:2"))
	o.options.ExpandClaims = true
	o.pods(mounting(several("web:1", 0, 1)...)...)
	for name, allows := range map[string]*bool{"fast": ptr.To(true), "slow": nil} {
		if err := o.server.Put(&storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, AllowVolumeExpansion: allows,
		}); err != nil {
			t.Fatal(err)
		}
	}
	o.put(inClass("fast", claimOf("web-0", "1Gi")), "0")
	o.put(inClass("slow", claimOf("web-1", "1Gi")), "1")
	s, p := o.plan()
	o.options.Live = o.server
	sent := o.send(s, p)
	if len(sent) != 1 || sent[0] != "patch data-web-0 of []" {
		t.Errorf("writes %v, want the claim of pod 0", sent)
	}
	failures := p.Pass.Failures()
	if len(failures) != 1 || !strings.Contains(failures[0].Err.Error(),
		`claim data-web-1 cannot grow: the storage class "slow" does not allow volume expansion`) {
		t.Errorf("failures %v", failures)
	}
	status := p.status(s)
	if got := status.VolumeClaims; len(got) != 1 || got[0] != (v1beta1.VolumeClaimStatus{VolumeClaimName: "data"}) {
		t.Errorf("claims %v", got)
	}
}
