package cloneset_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/cloneset"
)

// A set whose pod is not scheduled passes the deadline. With another scheduler the pod, which is not available, is
// recreated.
func TestDeadlineOfUnschedulablePod(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.SchedulerName = "other"
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	m.eventually(set, all(reason("CloneSetUpdated"), counts(1, 0)))
	m.Advance(11 * time.Minute)
	m.eventually(set, all(reason("ProgressDeadlineExceeded"), states(inStates{preparingNormal: 1})))
	want := fmt.Sprintf("CloneSet revision %s has timed out progressing", set.Status.UpdateRevision)
	if got := condition(set, v1beta1.CloneSetConditionTypeProgressing); got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	first := m.pods(set)[0]
	if first.Status.Phase != corev1.PodPending {
		t.Errorf("phase %s", first.Status.Phase)
	}
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.SchedulerName = "" })
	m.eventually(set, all(settled, reason("CloneSetAvailable"), states(inStates{normal: 1})))
	if m.pods(set)[0].UID == first.UID {
		t.Error("the pod is the same")
	}
}

// The partition is reported when the pods beyond it are available.
func TestProgressThroughPartition(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 4, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromString("99%"))
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	m.change(set, image("web:broken"))
	m.eventually(set, all(reason("CloneSetUpdated"), images(map[string]int{"web:1": 3, "web:broken": 1})))
	m.change(set, image("web:2"))
	m.eventually(set, all(reason("ProgressPartitionAvailable"), images(map[string]int{"web:1": 3, "web:2": 1})))
	if set.Status.ExpectedUpdatedReplicas != 1 {
		t.Errorf("status %+v", set.Status)
	}
}

// The deadline counts from the start of a rollout, and again from the next revision. A rollout past its deadline stays
// so until it is complete, paused or replaced. The reference counts from the last change of the reason instead.
func TestDeadlineStartsWithTheRollout(t *testing.T) {
	m := newModel(t, cloneset.Options{})
	set := m.create("web", 1, func(s *v1beta1.CloneSet) {
		inPlace(s)
		s.Spec.ProgressDeadlineSeconds = ptr.To(int32(600))
	})
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
	m.Advance(20 * time.Minute)
	m.stays(set, reason("CloneSetAvailable"))
	m.change(set, image("web:broken"))
	m.eventually(set, all(reason("CloneSetUpdated"), images(map[string]int{"web:broken": 1})))
	m.Advance(9 * time.Minute)
	m.stays(set, reason("CloneSetUpdated"))
	m.Advance(2 * time.Minute)
	m.eventually(set, reason("ProgressDeadlineExceeded"))
	m.scale(set, 2)
	m.eventually(set, counts(2, 0))
	m.stays(set, reason("ProgressDeadlineExceeded"))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "other:broken" })
	m.eventually(set, reason("CloneSetUpdated"))
	m.Advance(11 * time.Minute)
	m.eventually(set, reason("ProgressDeadlineExceeded"))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true })
	m.eventually(set, reason("CloneSetPaused"))
	m.change(set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = false })
	m.eventually(set, reason("CloneSetUpdated"))
	m.change(set, image("web:3"))
	m.eventually(set, all(settled, reason("CloneSetAvailable")))
}
