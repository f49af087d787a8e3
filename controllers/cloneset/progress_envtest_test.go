//go:build envtest

package cloneset_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A pod that nobody schedules runs into the deadline; with another scheduler it is recreated, for it was not available
// anyway, and all is well.
func TestDeadlineOfUnschedulablePod(t *testing.T) {
	c := &clock{}
	b := start(t, cloneset.Options{Now: c.now})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.SchedulerName = "nobody"
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, all(reason("CloneSetUpdated"), counts(1, 0)))
	b.advance(c, 11*time.Minute, set)
	b.eventually(set, all(reason("ProgressDeadlineExceeded"), states(map[pub.LifecycleState]int{pub.LifecycleStatePreparingNormal: 1})))
	want := fmt.Sprintf("CloneSet revision %s has timed out progressing", set.Status.UpdateRevision)
	if got := condition(set, v1beta1.CloneSetConditionTypeProgressing); got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	first := b.pods(set)[0]
	if first.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s", first.Status.Phase)
	}
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.SchedulerName = "" })
	b.eventually(set, all(settled, reason("CloneSetAvailable"), states(map[pub.LifecycleState]int{pub.LifecycleStateNormal: 1})))
	if b.pods(set)[0].UID == first.UID {
		t.Error("the pod is the same")
	}
}

// A set that is paused from the beginning has its pods made, and says that it is paused until all are available.
func TestProgressOfPausedSet(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 2, func(s *v1beta1.CloneSet) {
		image("web:broken")(s)
		s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{Paused: true}
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, all(counts(2, 0), reason("CloneSetPaused")))
	if got := condition(set, v1beta1.CloneSetConditionTypeProgressing); got != "CloneSet is paused" {
		t.Errorf("message %q", got)
	}
	// The pods are recreated by hand with an image that runs, as no update will.
	b.change(set, image("web:1"))
	b.delete(b.pods(set)...)
	b.eventually(set, all(counts(2, 2), reason("CloneSetAvailable")))
}

// The largest deadline is none, as no deadline is.
func TestNoDeadline(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = ptr.To(int32(math.MaxInt32)) })
	b.eventually(set, all(settled, reason("")))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600)) })
	b.eventually(set, reason("CloneSetAvailable"))

	slow := b.create("slow", 1, func(s *v1beta1.CloneSet) {
		s.Spec.ProgressDeadlineSeconds, s.Spec.MinReadySeconds = ptr.To(int32(math.MaxInt32)), math.MaxInt32
	})
	ready := func(set *v1beta1.CloneSet, _ []corev1.Pod) error {
		if set.Status.ReadyReplicas != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	}
	b.eventually(slow, all(ready, counts(1, 0), reason("")))
	b.change(slow, func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds, s.Spec.MinReadySeconds = nil, 10 })
	b.eventually(slow, all(ready, reason("")))
}

// The condition through a partition and a pause. Which pods a partition lets through is for TestPartition.
func TestProgressThroughPartition(t *testing.T) {
	b := start(t, cloneset.Options{})
	set := b.create("web", 4, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("99%"))
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
	b.change(set, image("web:broken"))
	b.eventually(set, all(reason("CloneSetUpdated"), images(map[string]int{"web:1": 3, "web:broken": 1})))
	b.change(set, image("web:2"))
	b.eventually(set, all(reason("ProgressPartitionAvailable"), images(map[string]int{"web:1": 3, "web:2": 1})))
	if set.Status.ExpectedUpdatedReplicas != 1 {
		t.Errorf("status %+v", set.Status)
	}
}

// The reference measures from when the reason before was set, so that a set that was available for long is late the moment a
// rollout begins. Here the clock starts with the rollout, starts again with the next revision, and a rollout that is late stays
// late until it is done, paused or replaced.
func TestDeadlineStartsWithTheRollout(t *testing.T) {
	c := &clock{}
	b := start(t, cloneset.Options{Now: c.now})
	set := b.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
	b.advance(c, 20*time.Minute, set)
	b.stays(set, reason("CloneSetAvailable"))
	b.change(set, image("web:broken"))
	b.eventually(set, all(reason("CloneSetUpdated"), images(map[string]int{"web:broken": 1})))
	b.advance(c, 9*time.Minute, set)
	b.stays(set, reason("CloneSetUpdated"))
	b.advance(c, 2*time.Minute, set)
	b.eventually(set, reason("ProgressDeadlineExceeded"))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To(int32(2)) })
	b.eventually(set, counts(2, 0))
	b.stays(set, reason("ProgressDeadlineExceeded"))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "other:broken" })
	b.eventually(set, reason("CloneSetUpdated"))
	b.advance(c, 11*time.Minute, set)
	b.eventually(set, reason("ProgressDeadlineExceeded"))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true })
	b.eventually(set, reason("CloneSetPaused"))
	b.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	b.eventually(set, reason("CloneSetUpdated"))
	b.change(set, image("web:3"))
	b.eventually(set, all(settled, reason("CloneSetAvailable")))
}
