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
	two := parse("0:1 1:1")
	checkPlans(t, map[string]planCase{
		"new: the claim comes before its pod, and outlasts both": {
			replicas: 1, set: changes{withClaims(keeps, keeps)}, want: "create data-web-0 of [], create web-0 of web:1",
		},
		"new, deleted: the claim is deleted with the set": {
			replicas: 1,
			set:      changes{withClaims(deletes, keeps)},
			want:     "create data-web-0 of [StatefulSet web], create web-0 of web:1",
		},
		"terminates: the name is taken until the claim is gone": {
			replicas: 1, set: changes{withClaims(keeps, keeps)}, claims: claimsOf(gone(claimOf("web-0", "1Gi"))),
		},
		"stale: the claim goes with the earlier pod": {
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "earlier"))),
		},
		"stale, parallel: other pods do not wait": {
			replicas: 2,
			set:      changes{parallel, withClaims(keeps, deletes)},
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "earlier")), claimOf("web-1", "1Gi")),
			want:     "create web-1 of web:1",
		},
		"pending: a pod that is not scheduled gets its claim again": {
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			pods:     mounting(pod("web-0", "web:1", pending)),
			want:     "create data-web-0 of [], move web-0 to Normal",
		},
		"policy is Delete: the claim refers to the set; another owner stays": {
			replicas: 1,
			set:      changes{withClaims(deletes, keeps)},
			pods:     mounting(parse("0:1")...),
			claims:   claimsOf(claimOf("web-0", "1Gi", foreign)),
			want:     "patch data-web-0 of [StatefulSet web Pod db-0]",
		},
		"policy is Retain: the claim refers to the set no more": {
			replicas: 1,
			set:      changes{withClaims(keeps, keeps)},
			pods:     mounting(parse("0:1")...),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofSet())),
			want:     "patch data-web-0 of []",
		},
		"policy is ignored: the gate is off": {
			options:  Options{IgnoreRetention: true},
			replicas: 1,
			set:      changes{withClaims(deletes, deletes)},
			pods:     mounting(parse("0:1")...),
			claims:   claimsOf(claimOf("web-0", "1Gi")),
		},
		"wanted again: the claim refers to its pod no more": {
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(parse("0:1")...),
			claims:   claimsOf(claimOf("web-0", "1Gi", ofPod("web-0", "uid-web-0"))),
			want:     "patch data-web-0 of []",
		},
		"scaled in, Delete: the claim refers to the pod before the pod is deleted": {
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(parse("0:1 1:1")...),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi")),
			want:     "patch data-web-1 of [Pod web-1], delete web-1",
		},
		"failed, not wanted: the claim refers to the pod before the pod is deleted": {
			set:    changes{withClaims(keeps, deletes)},
			pods:   mounting(parse("0:1!")...),
			claims: claimsOf(claimOf("web-0", "1Gi")),
			want:   "patch data-web-0 of [Pod web-0], delete web-0",
		},
		"wanted, terminating: scaled in and out again: the claim outlasts the pod": {
			replicas: 2,
			set:      changes{parallel, withClaims(keeps, deletes)},
			pods:     mounting(parse("0:1 1:1*")...),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi", ofPod("web-1", "uid-web-1"))),
			want:     "patch data-web-1 of []",
		},
		"waits for its turn: a pod that is deleted by another client meanwhile takes its claim along": {
			replicas: 1,
			set:      changes{withClaims(keeps, deletes)},
			pods:     mounting(parse("0:1 1:1 2:1*")...),
			claims:   claimsOf(claimOf("web-0", "1Gi"), claimOf("web-1", "1Gi"), claimOf("web-2", "1Gi")),
			want:     "patch data-web-2 of [Pod web-2], patch data-web-1 of [Pod web-1]",
		},
		"template added: one pod at a time is recreated, as no running pod gets a volume": {
			replicas: 2, set: changes{parallel, withClaims(keeps, keeps)}, pods: two, want: "delete web-1",
		},
		"added, partition: the partition holds": {
			replicas: 2, set: changes{parallel, partition(2), withClaims(keeps, keeps)}, pods: parse("0:1 1:1"),
		},
		"added, OnDelete: the user deletes the pods": {
			replicas: 2, set: changes{parallel, onDelete, withClaims(keeps, keeps)}, pods: parse("0:1 1:1"),
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
