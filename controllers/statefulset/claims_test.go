package statefulset

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

const (
	keeps   = v1beta1.RetainPersistentVolumeClaimRetentionPolicyType
	deletes = v1beta1.DeletePersistentVolumeClaimRetentionPolicyType
)

func ofSet() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "web", UID: "set"}
}

func ofPod(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: uid}
}

// Which claims are created, and whom they belong to.
func TestPlanClaims(t *testing.T) {
	claimsOf := func(claims ...*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim { return claims }
	pending := podtest.Change(podtest.Unscheduled)
	gone := func(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: podtest.Noon()}, []string{"kubernetes.io/pvc-protection"}
		return c
	}
	foreign := ofPod("db-0", "uid-db-0")
	two := several("web:1", 0, 1)
	checkPlans(t, map[string]planCase{
		"new": {
			why:      "the claim comes before its pod, and outlasts both",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			want:     []string{"create data-web-0 of []", "create web-0 of web:1"},
		},
		"new, deleted": {
			why:      "the claim is deleted with the set",
			replicas: 1,
			set:      changes{withClaims(deletes, keeps)},
			want:     []string{"create data-web-0 of [StatefulSet web]", "create web-0 of web:1"},
		},
		"exists": {
			why:      "the claim is used as it is",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			claims:   claimsOf(claimOf("web-0", "1Mi")),
			want:     []string{"create web-0 of web:1"},
		},
		"terminates": {
			why:      "the name is taken until the claim is gone",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			claims:   claimsOf(gone(claimOf("web-0", "1Gi"))),
		},
		"stale": {
			why:      "the claim goes with the earlier pod",
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "earlier"))),
		},
		"stale, retained": {
			why:      "the policy does not look at the claim's pod",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "earlier"))),
			want:     []string{"create web-0 of web:1"},
		},
		"stale, parallel": {
			why:      "other pods do not wait",
			replicas: 2,
			set:      changes{parallel, withClaims(keeps, deletes)},
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "earlier")), claimOf("web-1", "1Gi")),
			want:     []string{"create web-1 of web:1"},
		},
		"pending": {
			why:      "a pod that is not scheduled gets its claim again",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			pods:     mounting(pod("web-0", "web:1", pending)),
			want:     []string{"create data-web-0 of []", "move web-0 to Normal"},
		},
		"running": {
			why:      "a running pod lacks nothing",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			pods:     mounting(pod("web-0", "web:1")),
		},
		"policy is Delete": {
			why:      "the claim refers to the set; another owner stays",
			replicas: 1,
			set:      changes{withClaims(deletes, keeps)},
			pods:     mounting(pod("web-0", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi", foreign)),
			want:     []string{"patch data-web-0 of [StatefulSet web Pod db-0]"},
		},
		"policy is Retain": {
			why:      "the claim refers to the set no more",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			pods:     mounting(pod("web-0", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofSet())),
			want:     []string{"patch data-web-0 of []"},
		},
		"policy is ignored": {
			why:      "the gate is off",
			options:  Options{IgnoreRetention: true},
			replicas: 1,
			set:      changes{withClaims(deletes, deletes)},
			pods:     mounting(pod("web-0", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi")),
		},
		"wanted again": {
			why:      "the claim refers to its pod no more",
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(pod("web-0", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "uid-web-0"))),
			want:     []string{"patch data-web-0 of []"},
		},
		"scaled in, Delete": {
			why:      "the claim refers to the pod before the pod is deleted",
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(several("web:1", 0, 1)...),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi")),
			want:     []string{"patch data-web-1 of [Pod web-1]", "delete web-1"},
		},
		"scaled in, both": {
			why:      "the claim goes over from the set to the pod",
			replicas: 1,
			set:      changes{withClaims(deletes, deletes)},
			pods:     mounting(several("web:1", 0, 1)...),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofSet()), claimOf("web-1", "1Gi", ofSet())),
			want:     []string{"patch data-web-1 of [Pod web-1]", "delete web-1"},
		},
		"scaled in, Retain": {
			why:      "the claim stays",
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			pods:     mounting(several("web:1", 0, 1)...),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi")),
			want:     []string{"delete web-1"},
		},
		"recreated": {
			why:      "the claim of a wanted pod stays",
			replicas: 1,
			set:      changes{withClaims(keeps, deletes), withImage("web:2")},
			pods:     mounting(pod("web-0", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi")),
			want:     []string{"delete web-0"},
		},
		"failed, not wanted": {
			why:      "the claim refers to the pod before the pod is deleted",
			replicas: 0,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(pod("web-0", "web:1", podtest.Phase(corev1.PodFailed))),
			claims:   claimsOf(claimOf("web-0", "1Gi")),
			want:     []string{"patch data-web-0 of [Pod web-0]", "delete web-0"},
		},
		"wanted, terminating": {
			why:      "scaled in and out again: the claim outlasts the pod",
			replicas: 2,
			set:      changes{parallel, withClaims(keeps, deletes)},
			pods:     mounting(pod("web-0", "web:1"), pod("web-1", "web:1", terminating(0))),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi", ofPod("web-1", "uid-web-1"))),
			want:     []string{"patch data-web-1 of []"},
		},
		"wanted, ordered": {
			why:      "the claim outlasts the pod, whose turn has not come",
			replicas: 2,
			set:      changes{withClaims(deletes, deletes)},
			pods:     mounting(pod("web-0", "web:1", podtest.NotReady), pod("web-1", "web:1", terminating(0))),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofSet()), claimOf("web-1", "1Gi", ofPod("web-1", "uid-web-1"))),
			want:     []string{"patch data-web-1 of [StatefulSet web]"},
		},
		"wanted, failed": {
			why:      "the claim is the next pod's before the pod is deleted",
			replicas: 2,
			set:      changes{parallel, withClaims(keeps, deletes)},
			pods:     mounting(pod("web-0", "web:1"), pod("web-1", "web:1", podtest.Phase(corev1.PodFailed))),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi", ofPod("web-1", "uid-web-1"))),
			want:     []string{"patch data-web-1 of []", "delete web-1"},
		},
		"wanted, updated": {
			why:      "the claim refers to the pod no more before the pod is deleted",
			replicas: 1,
			set:      changes{withClaims(keeps, deletes), withImage("web:2")},
			pods:     mounting(pod("web-0", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "uid-web-0"))),
			want:     []string{"patch data-web-0 of []", "delete web-0"},
		},
		"terminates already": {
			why:      "the claim goes with a pod that another client deleted",
			replicas: 1,
			set:      changes{parallel, withClaims(keeps, deletes)},
			pods:     mounting(pod("web-0", "web:1"), pod("web-1", "web:1", terminating(0))),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi")),
			want:     []string{"patch data-web-1 of [Pod web-1]"},
		},
		"waits for its turn": {
			why:      "a pod that is deleted by another client meanwhile takes its claim along",
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(pod("web-0", "web:1"), pod("web-1", "web:1"), pod("web-2", "web:1", terminating(0))),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi"), claimOf("web-2", "1Gi")),
			want:     []string{"patch data-web-2 of [Pod web-2]", "patch data-web-1 of [Pod web-1]"},
		},
		"template added": {
			why:      "one pod at a time is recreated, as no running pod gets a volume",
			replicas: 2,
			set:      changes{parallel, withClaims(keeps, keeps)},
			pods:     two,
			want:     []string{"delete web-1"},
		},
		"added, partition": {
			why:      "the partition holds",
			replicas: 2,
			set:      changes{parallel, partition(2), withClaims(keeps, keeps)},
			pods:     several("web:1", 0, 1),
		},
		"added, OnDelete": {
			why:      "the user deletes the pods",
			replicas: 2,
			set:      changes{parallel, onDelete, withClaims(keeps, keeps)},
			pods:     several("web:1", 0, 1),
		},
		"update beside stale": {
			why:      "the empty slot counts, and another pod is updated",
			replicas: 2,
			set:      changes{parallel, withImage("web:2"), maxUnavailable(2), withClaims(keeps, deletes)},
			pods:     mounting(pod("web-1", "web:1")),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "earlier")), claimOf("web-1", "1Gi")),
			want:     []string{"delete web-1"},
		},
	})
}

// What a new pod is.
func TestNewPod(t *testing.T) {
	o := observe(t, 1, withClaims(keeps, keeps), func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "tmp"}, {Name: "data"}}
		s.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"app": "template", "disk": "fast"}
	})
	_, p := o.plan()
	o.set.Status.CurrentRevision = p.Update
	o.writes()
	var pod corev1.Pod
	if err := o.server.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-0"}, &pod); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"app": "web", "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0",
		"controller-revision-hash": p.Update, "lifecycle.apps.kruise.io/state": "Normal",
	}
	if diff := cmp.Diff(want, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	volumes := slices.Collect(func(yield func(string) bool) {
		for _, v := range pod.Spec.Volumes {
			claim := ptr.Deref(v.PersistentVolumeClaim, corev1.PersistentVolumeClaimVolumeSource{})
			if !yield(v.Name + "=" + claim.ClaimName) {
				return
			}
		}
	})
	if diff := cmp.Diff([]string{"tmp=", "data=data-web-0"}, volumes); diff != "" {
		t.Errorf("the claim takes the place of a volume of its name (-want +got):\n%s", diff)
	}
	ref := metav1.GetControllerOf(&pod)
	if pod.Spec.Hostname != "web-0" || pod.Spec.Subdomain != "front" || pod.GenerateName != "web-" || ref == nil ||
		ref.APIVersion != "apps.kruise.io/v1beta1" || ref.Kind != "StatefulSet" {
		t.Errorf("hostname %q, subdomain %q, generateName %q, controller %v",
			pod.Spec.Hostname, pod.Spec.Subdomain, pod.GenerateName, ref)
	}
	if pod.Annotations["lifecycle.apps.kruise.io/timestamp"] != "2030-01-01T12:00:00Z" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	var claim corev1.PersistentVolumeClaim
	if err := o.server.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "data-web-0"}, &claim); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", "disk": "fast"}, claim.Labels); diff != "" {
		t.Errorf("the labels of the selector come on top (-want +got):\n%s", diff)
	}
}
