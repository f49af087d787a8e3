//go:build envtest

package cloneset_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// Pods that are named are deleted first, and their names are removed from the list. The garbage collector, which this
// control plane lacks, deletes their claims with them.
func TestPodsToDelete(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, withClaims)
	b.eventually(set, settled)
	chosen := b.pods(set)[1]
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Replicas = ptr.To(int32(2))
		s.Spec.ScaleStrategy.PodsToDelete = []string{chosen.Name}
	})
	b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
		if slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == chosen.UID }) ||
			len(set.Spec.ScaleStrategy.PodsToDelete) > 0 {
			return fmt.Errorf("%s still exists, or is named in %v", chosen.Name, set.Spec.ScaleStrategy.PodsToDelete)
		}
		return settled(set, pods)
	})
	if own := b.claimsOf(chosen.UID); len(own) != 1 || len(b.claimsOf(set.UID)) != 2 {
		t.Errorf("claims %v of the deleted pod, %v of the set", own, b.claimsOf(set.UID))
	}
}

// Two sets whose selectors match each other's pods keep the pods that they own.
func TestOverlappingSelectors(t *testing.T) {
	b := start(t, cloneset.Options{})
	both := func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.Selector.MatchLabels = map[string]string{"tier": "front"}
		s.Spec.Template.Labels["tier"] = "front"
	}
	one, other := b.create("one", 2, both), b.create("other", 3, both)
	b.eventually(one, settled)
	b.eventually(other, settled)
	kept := uids(b.pods(other))
	b.change(one, image("web:2"))
	b.scale(one, 1)
	b.eventually(one, settled)
	b.still()
	b.eventually(other, settled)
	if after := uids(b.pods(other)); fmt.Sprint(after) != fmt.Sprint(kept) || running(b.pods(other), "web:1") != 3 {
		t.Errorf("pods %v of the other set became %v", kept, after)
	}
	for _, pod := range append(b.pods(one), b.pods(other)...) {
		if owner := metav1.GetControllerOf(&pod); owner == nil || owner.Name != pod.Labels["app"] {
			t.Errorf("%s is owned by %v", pod.Name, owner)
		}
	}
}
