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
	three := func() []*corev1.Pod { return mounting(parse("0:1 1:1 2:1")...) }
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
		"claims alone: the claim of the last pod grows, and no pod changes": {
			options:  on,
			replicas: 3,
			set:      changes{growing},
			pods:     three(),
			claims:   small(),
			want:     "patch data-web-2 of []",
		},
		"gate off: claims stay": {replicas: 3, set: changes{growing}, pods: three(), claims: small()},
		"on delete: claims stay": {
			options:  on,
			replicas: 3,
			set: changes{growing, func(s *v1beta1.StatefulSet) {
				s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
			}},
			pods:   three(),
			claims: small(),
		},
		"partition: pods below keep their claims": {
			options: on, replicas: 3, set: changes{growing, partition(3)}, pods: three(), claims: small(),
		},
		"paused: nothing grows": {
			options: on, replicas: 3, set: changes{growing, paused}, pods: three(), claims: small(),
		},
		"before the pod: the pod waits for its claim": {
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2"), inPlace},
			pods:     three(),
			claims:   small(),
			want:     "patch data-web-2 of []",
		},
		"growing: the volume spends the budget": {
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2"), inPlace},
			pods:     three(),
			claims:   with(grows("web-2", time.Time{})),
		},
		"grown: the pod follows its claim": {
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2"), inPlace},
			pods:     three(),
			claims:   with(claimOf("web-2", "2Gi")),
			want:     "take web-2 out of traffic, update web-2 to web:2",
		},
		"mounts with the pod: a recreated pod mounts it again": {
			options:  on,
			replicas: 3,
			set:      changes{growing, withImage("web:2")},
			pods:     three(),
			claims:   with(grows("web-2", noon)),
			want:     "delete web-2",
		},
		"remount: a pod is recreated where its node does not grow the file system": {
			options:  on,
			replicas: 3,
			set:      changes{growing},
			pods:     aged(three()),
			claims:   with(claimOf("web-2", "2Gi"), claimOf("web-1", "2Gi"), grows("web-0", noon.Add(-time.Hour))),
			want:     "delete web-0",
		},
		"not bound: until then the API server forbids that it grows, and the pod may need its update to bind it": {
			options:  on,
			replicas: 3,
			set:      changes{growing, parallel, withImage("web:2")},
			pods:     mounting(parse("0:1 1:1 2:1-")...),
			claims:   with(unbound("web-2")),
			want:     "delete web-2",
		},
		"unavailable pods first: the budget is spent by a pod that is not ready": {
			options:  on,
			replicas: 3,
			set:      changes{growing, parallel},
			pods:     mounting(parse("0:1- 1:1 2:1")...),
			claims:   small(),
		},
	})
}

// A claim that cannot grow is reported, and keeps no other pod from its turn.
func TestRefusedExpansion(t *testing.T) {
	o := observe(t, 2, growing, parallel, inPlace, withImage("web:2"))
	o.options.ExpandClaims = true
	o.pods(mounting(parse("0:1 1:1")...)...)
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
