//go:build envtest

package cloneset_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// Creation stops where too many pods are unavailable, which is told once for as long as nothing changes.
func TestScaleOutIsLimited(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 5, func(s *v1beta1.CloneSet) {
		image("web:broken")(s)
		s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2))
	})
	b.eventually(set, all(counts(2, 0), images(map[string]int{"web:broken": 2})))
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error { return b.told(set, "ScaleUpLimited") })
	b.stays(set, counts(2, 0))
	before := len(b.events(set, "ScaleUpLimited"))
	b.change(set, func(s *v1beta1.CloneSet) { s.Labels = map[string]string{"touched": "true"} })
	b.stays(set, counts(2, 0))
	if after := b.events(set, "ScaleUpLimited"); len(after) != before || after[0].Count > 2 {
		t.Errorf("told %d times, then %d: %+v", before, len(after), after)
	}
}

// Three pods, of which some are not ready, are to be six, and two may be unavailable.
func TestScaleOutWithUnreadyPods(t *testing.T) {
	for name, c := range map[string]struct {
		why           string
		unready, want int
	}{
		"one is not ready":  {"one more may be", 1, 4},
		"two are not ready": {"no more may be", 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, cloneset.Options{})
			set := b.create("web", 3, func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{Partition: ptr.To(intstr.FromInt32(3))}
				s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2))
			})
			b.eventually(set, settled)
			for _, pod := range b.pods(set)[:c.unready] {
				b.patch(&pod, fmt.Sprintf(`{"annotations":{%q:""}}`, unready))
			}
			b.eventually(set, counts(3, int32(3-c.unready)))
			b.change(set, func(s *v1beta1.CloneSet) {
				image("web:broken")(s)
				s.Spec.Replicas = ptr.To(int32(6))
			})
			b.eventually(set, func(set *v1beta1.CloneSet, pods []corev1.Pod) error {
				return counts(int32(c.want), int32(3-c.unready))(set, pods)
			})
			b.stays(set, func(_ *v1beta1.CloneSet, pods []corev1.Pod) error {
				if len(pods) != c.want {
					return fmt.Errorf("%s: %d pods, want %d", c.why, len(pods), c.want)
				}
				return nil
			})
		})
	}
}

// Each pod comes as soon as the one before it has been ready for minReadySeconds, which are two here, and not before.
// Nothing but the requeue tells when that is.
func TestScaleOutOneByOne(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 3, func(s *v1beta1.CloneSet) {
		s.Spec.MinReadySeconds = 2
		s.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	})
	b.eventually(set, settled)
	pods := b.pods(set)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := 1; i < len(pods); i++ {
		for _, c := range pods[i-1].Status.Conditions {
			// Times have no fractions of seconds.
			if gap := pods[i].CreationTimestamp.Sub(c.LastTransitionTime.Time); c.Type == corev1.PodReady && (gap < 2*time.Second || gap > 4*time.Second) {
				t.Errorf("pod %d was created %s after the one before it was ready", i, gap)
			}
		}
	}
}

// Pods that are ready, and not yet available, are not deleted while that would take more out of use than the budget has.
func TestScaleInWaitsForAvailability(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 5, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 9999 })
	b.eventually(set, func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if set.Status.ReadyReplicas != 5 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(3)) })
	b.stays(set, counts(5, 0))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 0 })
	b.eventually(set, settled)
}

// While a chosen pod is on its way out, no other is deleted with it.
func TestScaleInChosenFirst(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 5, withDeleteHook)
	b.eventually(set, settled)
	pods := b.pods(set)
	for i := range pods[1:] {
		b.patch(&pods[1+i], `{"labels":{"example.com/hook":null}}`)
	}
	b.change(set, func(s *v1beta1.CloneSet) {
		s.Spec.Replicas = ptr.To(int32(3))
		s.Spec.ScaleStrategy.PodsToDelete = []string{pods[0].Name}
	})
	b.eventually(set, states(map[pub.LifecycleState]int{pub.LifecycleStatePreparingDelete: 1, pub.LifecycleStateNormal: 4}))
	b.stays(set, counts(5, 4))
	b.patch(&pods[0], `{"labels":{"example.com/hook":null}}`)
	b.eventually(set, settled)
	if slices.Contains(names(b.pods(set)), pods[0].Name) {
		t.Errorf("%s was chosen, and is there", pods[0].Name)
	}
}

// withDeleteHook makes pods that their hook holds before deletion.
func withDeleteHook(s *v1beta1.CloneSet) {
	s.Spec.Template.Labels["example.com/hook"] = "true"
	s.Spec.Lifecycle = &pub.Lifecycle{PreDelete: &pub.LifecycleHook{LabelsHandler: map[string]string{"example.com/hook": "true"}}}
}

// Of what is missing, the share of the partition comes from the current revision and the rest from the update revision, in
// the order of the names.
func TestScaleOutOfTwoRevisions(t *testing.T) {
	b := start(t, cloneset.Options{NewID: numbered()})
	set := b.create("web", 2, func(s *v1beta1.CloneSet) {
		inPlace(s)
		withClaims(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(3))
	})
	b.eventually(set, settled)
	b.change(set, func(s *v1beta1.CloneSet) {
		image("web:2")(s)
		s.Spec.Replicas = ptr.To(int32(5))
	})
	b.eventually(set, counts(5, 5))
	b.still()
	want := map[string]string{"web-aa": "web:1", "web-ab": "web:1", "web-ac": "web:1", "web-ad": "web:2", "web-ae": "web:2"}
	for _, pod := range b.pods(set) {
		id := pod.Labels[pub.CloneSetInstanceIDKey]
		if pod.Spec.Containers[0].Image != want[pod.Name] || pod.Name != "web-"+id {
			t.Errorf("%s (id %s) runs %s, want %s", pod.Name, id, pod.Spec.Containers[0].Image, want[pod.Name])
		}
		if v := pod.Spec.Volumes; !slices.ContainsFunc(v, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data-web-"+id
		}) {
			t.Errorf("%s has volumes %v", pod.Name, v)
		}
	}
	if got := claimNames(b.claims()); len(got) != 5 {
		t.Errorf("claims %v", got)
	}
}
