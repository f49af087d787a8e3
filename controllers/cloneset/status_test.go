package cloneset

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// The counters of the status.
func TestStatusCounts(t *testing.T) {
	type counters struct{ Replicas, Ready, Available, Updated, UpdatedReady, UpdatedAvailable, ExpectedUpdated int32 }
	for name, c := range map[string]struct {
		why      string
		replicas int32
		set      func(*v1beta1.CloneSet)
		pods     []*corev1.Pod
		want     counters
	}{
		"converged": {"every pod counts everywhere", 2, nil, several(2, "web:1"), counters{2, 2, 2, 2, 2, 2, 2}},
		"coming up": {
			why:      "pods count before they are ready",
			replicas: 2,
			pods:     several(2, "web:1", podtest.NotReady),
			want:     counters{2, 0, 0, 2, 0, 0, 2},
		},
		"new": {
			why:      "a pod in PreparingNormal is not available",
			replicas: 1,
			pods:     several(1, "web:1", podtest.State(kruise.LifecycleStatePreparingNormal)),
			want:     counters{1, 1, 0, 1, 1, 0, 1},
		},
		"ready for a moment": {
			"a pod is available after minReadySeconds", 1, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 10 },
			several(1, "web:1", podtest.ReadyFor(9*time.Second)),
			counters{1, 1, 0, 1, 1, 0, 1},
		},
		"two revisions": {
			why:      "the partition expects one updated pod of four",
			replicas: 4,
			set:      inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Partition: withPercent("99%")}),
			pods:     append(several(3, "web:1"), podtest.New("web-d", "web:2")),
			want:     counters{4, 4, 4, 1, 1, 1, 1},
		},
		"held before deletion": {
			why:      "the pod counts, and is not available",
			replicas: 3,
			pods: append(several(2, "web:1"),
				podtest.New("web-c", "web:1", podtest.State(kruise.LifecycleStatePreparingDelete))),
			want: counters{3, 3, 2, 3, 3, 2, 3},
		},
		"finished and terminating": {
			why:      "these pods do not count",
			replicas: 3,
			pods: append(several(1, "web:1"), podtest.New("web-b", "web:1", podtest.Phase(corev1.PodSucceeded)),
				podtest.New("web-c", "web:1", podtest.Terminating(0))),
			want: counters{1, 1, 1, 1, 1, 1, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.replicas, c.set)
			o.pods(c.pods...)
			s := o.status()
			got := counters{
				s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas,
				s.UpdatedAvailableReplicas, s.ExpectedUpdatedReplicas,
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if s.ObservedGeneration != o.set.Generation || s.LabelSelector != "app=web" || s.CollisionCount == nil {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// The current revision becomes the update revision when every pod is updated.
func TestStatusRevisions(t *testing.T) {
	for name, c := range map[string]struct {
		why      string
		pods     []*corev1.Pod
		promoted bool
	}{
		"all updated": {"the next rollout starts from here", several(2, "web:2"), true},
		"one updated": {
			"the rollout goes on", []*corev1.Pod{podtest.New("web-a", "web:1"), podtest.New("web-b", "web:2")}, false,
		},
		"one missing":  {"a missing pod may get the current revision", several(1, "web:2"), false},
		"one too many": {"the pod that is deleted may be an old one", several(3, "web:2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t, 2, inPlaceIfPossible(v1beta1.RollingUpdateCloneSetStrategy{Paused: true}))
			first, second := o.revision("web:1"), o.revision("web:2")
			o.pods(c.pods...)
			s := o.status()
			if s.UpdateRevision != second || (s.CurrentRevision == second) != c.promoted ||
				!c.promoted && s.CurrentRevision != first {
				t.Errorf("%s: from %s to %s", c.why, s.CurrentRevision, s.UpdateRevision)
			}
		})
	}
}

// The condition Progressing, and when the set is reconciled again because of the deadline.
func TestProgress(t *testing.T) {
	type condition struct {
		Status  corev1.ConditionStatus
		Reason  string
		Message string
	}
	deadline := func(seconds int32) func(*v1beta1.CloneSet) {
		return func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = &seconds }
	}
	since := func(reason string, ago time.Duration) *v1beta1.CloneSetCondition {
		at := metav1.NewTime(podtest.Noon().Add(-ago))
		return &v1beta1.CloneSetCondition{
			Type:               v1beta1.CloneSetConditionTypeProgressing,
			Status:             corev1.ConditionTrue,
			Reason:             reason,
			Message:            "CloneSet is progressing",
			LastUpdateTime:     at,
			LastTransitionTime: at,
		}
	}
	available := condition{"True", "CloneSetAvailable", "CloneSet is available"}
	updated := condition{"True", "CloneSetUpdated", "CloneSet is progressing"}
	paused := condition{"True", "CloneSetPaused", "CloneSet is paused"}
	partition := condition{"True", "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready"}
	exceeded := condition{"False", "ProgressDeadlineExceeded", "CloneSet revision UPDATE has timed out progressing"}
	ready, at := parse("a:1"), func(at int32) func(*v1beta1.CloneSet) {
		return rolling(v1beta1.RollingUpdateCloneSetStrategy{Partition: withNumber(at)})
	}
	isPaused := rolling(v1beta1.RollingUpdateCloneSetStrategy{Paused: true})
	for why, c := range map[string]struct {
		// set has a deadline of ten minutes, and pods are broken ones, where they are not given.
		set  func(*v1beta1.CloneSet)
		pods []*corev1.Pod
		old  *v1beta1.CloneSetCondition
		// oldRevision is the image of the update revision of the old status.
		oldRevision string
		want        condition
		wait        time.Duration
	}{
		"without a deadline the condition is removed": {
			set: func(s *v1beta1.CloneSet) { s.Spec.ProgressDeadlineSeconds = nil }, old: since("CloneSetUpdated", time.Minute),
			oldRevision: "web:1",
		},
		"the largest deadline is none": {
			set: deadline(math.MaxInt32), old: since("CloneSetUpdated", time.Minute), oldRevision: "web:1",
		},
		"every pod is updated and available, and a deadline that was exceeded is over": {
			pods: ready, old: since("ProgressDeadlineExceeded", time.Hour), oldRevision: "web:1", want: available,
		},
		"the deadline counts from now": {want: updated, wait: 10 * time.Minute},
		"the deadline counts from the start of the rollout, not from the last change of the reason": {
			old: since("CloneSetAvailable", 20*time.Minute), oldRevision: "web:1", want: updated, wait: 10 * time.Minute,
		},
		"the rest of the deadline, and a second for the fractions of seconds": {
			old: since("CloneSetUpdated", 9*time.Minute), oldRevision: "web:1", want: updated, wait: time.Minute + time.Second,
		},
		"the deadline has passed": {
			old: since("CloneSetUpdated", 11*time.Minute), oldRevision: "web:1", want: exceeded,
		},
		"a rollout past its deadline stays so": {
			set: deadline(3600), old: since("ProgressDeadlineExceeded", time.Second), oldRevision: "web:1", want: exceeded,
		},
		"the deadline counts again for another revision": {
			old: since("ProgressDeadlineExceeded", time.Hour), oldRevision: "web:9", want: updated, wait: 10 * time.Minute,
		},
		"the deadline counts again for a set that is resumed": {
			old: since("CloneSetPaused", time.Hour), oldRevision: "web:1", want: updated, wait: 10 * time.Minute,
		},
		"a paused set has no deadline": {
			set: isPaused, old: since("ProgressDeadlineExceeded", time.Hour), oldRevision: "web:2", want: paused,
		},
		"a paused set may be available": {
			set: isPaused, pods: parse("a:2"), old: since("CloneSetPaused", time.Hour), oldRevision: "web:2", want: available,
		},
		"the pods beyond the partition are updated and available": {
			set: at(1), pods: ready, old: since("CloneSetUpdated", time.Minute), oldRevision: "web:2", want: partition,
		},
		"a pod beyond the partition is not updated": {
			set: at(0), pods: ready, old: since("CloneSetUpdated", time.Minute), oldRevision: "web:2", want: updated,
			wait: 9*time.Minute + time.Second,
		},
	} {
		t.Run(why, func(t *testing.T) {
			if c.set == nil {
				c.set = func(*v1beta1.CloneSet) {}
			}
			if c.pods == nil {
				c.pods = parse("a:1-")
			}
			o := observe(t, 1, both(deadline(600), c.set))
			o.pods(c.pods...)
			if c.oldRevision != "" {
				o.set.Status.UpdateRevision = o.revision(c.oldRevision)
			}
			if c.old != nil {
				o.set.Status.Conditions = append(o.set.Status.Conditions, *c.old)
			}
			seen, p := o.plan()
			status, list := p.status(seen), workloads.Converted[workloads.Conditions](o.set.Status.Conditions)
			p.After = passes.Earliest{} // what else the status waits for
			p.progress(seen, status, &list)
			got, wait := condition{}, p.After.After()
			if is := list.Find(progressing); is != nil {
				got = condition{is.Status, is.Reason, strings.ReplaceAll(is.Message, status.UpdateRevision, "UPDATE")}
			}
			if diff := cmp.Diff(c.want, got); diff != "" || wait != c.wait {
				t.Errorf("waits %s, want %s (-want +got):\n%s", wait, c.wait, diff)
			}
		})
	}
}

// An image that cannot be pulled is reported at once. TestStall of internal/workloads has the other cases.
func TestStalled(t *testing.T) {
	o, pods := observe(t, 1, nil), parse("a:1-")
	pods[0].Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
	o.pods(pods...)
	got := workloads.Converted[workloads.Conditions](o.status().Conditions).Find(workloads.Stalled)
	if got == nil || got.Status != corev1.ConditionTrue || got.Reason != "ImagePullFailed" ||
		got.Message != "web-a: container web cannot pull image web:1" {
		t.Errorf("condition %+v", got)
	}
}

// What of a spec cannot be used, and how the status reports that.
func TestStatusOfInvalidSpec(t *testing.T) {
	for name, c := range map[string]struct {
		why       string
		set       func(*v1beta1.CloneSet)
		condition v1beta1.CloneSetConditionType
		text      string
	}{
		"partition": {
			why:       "it counts as none",
			set:       rolling(v1beta1.RollingUpdateCloneSetStrategy{Partition: withPercent("lots")}),
			condition: v1beta1.CloneSetConditionFailedUpdate,
			text:      "partition: ",
		},
		"maxUnavailable": {
			why:       "the default counts",
			set:       rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxUnavailable: withPercent("5")}),
			condition: v1beta1.CloneSetConditionFailedUpdate,
			text:      "maxUnavailable: ",
		},
		"maxSurge": {
			why:       "it counts as none",
			set:       rolling(v1beta1.RollingUpdateCloneSetStrategy{MaxSurge: withPercent("%")}),
			condition: v1beta1.CloneSetConditionFailedUpdate,
			text:      "maxSurge: ",
		},
		"scale maxUnavailable": {
			why:       "it counts as none",
			set:       scalesWith(withPercent("")),
			condition: v1beta1.CloneSetConditionFailedUpdate,
			text:      "scaleStrategy.maxUnavailable: ",
		},
		"another selector": {
			why:       "each pod would be released at once",
			set:       func(s *v1beta1.CloneSet) { s.Spec.Selector.MatchLabels = map[string]string{"app": "other"} },
			condition: v1beta1.CloneSetConditionFailedScale,
			text:      "does not match",
		},
		"nothing wrong": {"there is no condition", func(s *v1beta1.CloneSet) { s.Spec.Replicas = ptr.To[int32](0) }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := observe(t, 2, c.set).status()
			var got []string
			for _, is := range s.Conditions {
				if is.Type != c.condition || !strings.Contains(is.Message, c.text) {
					t.Errorf("%s: condition %+v", c.why, is)
				}
				got = append(got, is.Message)
			}
			if (len(got) == 1) != (c.text != "") {
				t.Errorf("%s: %q", c.why, got)
			}
		})
	}
}

// A spec whose revision could not be stored is not observed: a takeover may record fields of an observed spec at the
// revision in the status. A spec that cannot be used is observed, and waits for another one.
func TestStatusOfFailure(t *testing.T) {
	o := observe(t, 1, nil)
	o.set.Generation, o.set.Status.ObservedGeneration = 2, 1
	s, _ := o.plan()
	for want, invalid := range map[int64]error{1: nil, 2: errors.New("unusable")} {
		s.Invalid = invalid
		got, ok := s.failed(errors.New("exceeded quota")).Object.(*v1beta1.CloneSet)
		if !ok || got.Status.ObservedGeneration != want || len(got.Status.Conditions) == 0 {
			t.Errorf("invalid %v: status %+v", invalid, got.Status)
		}
	}
}
