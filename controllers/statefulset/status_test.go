package statefulset

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/test/rig/podtest"
)

// counters are those of a status, and whether the update revision is the current one.
type counters struct {
	Replicas, Ready, Available, Current, Updated, UpdatedReady, UpdatedAvailable int32
	Completed                                                                    bool
}

func TestStatus(t *testing.T) {
	two := withImage("web:2")
	cases := map[string]struct {
		why      string
		replicas int32
		set      changes
		pods     []*corev1.Pod
		want     counters
	}{
		"rolling": {
			why:      "each pod counts for its revision",
			replicas: 3,
			set:      changes{two},
			pods:     slices.Concat(parse("0:1 1:1"), parse("2:2")),
			want:     counters{3, 3, 3, 2, 1, 1, 1, false},
		},
		"terminating": {
			why:      "the pod exists, and is neither ready nor updated",
			replicas: 2,
			pods:     append(parse("0:1"), pod("web-1", "web:1", terminating(0))),
			want:     counters{2, 1, 1, 1, 1, 1, 1, true},
		},
		"held": {
			why:      "a pod that its hook has not made Normal is ready, and not available",
			replicas: 1,
			pods:     []*corev1.Pod{pod("web-0", "web:1", podtest.State(kruise.LifecycleStatePreparingNormal))},
			want:     counters{1, 1, 0, 1, 1, 1, 0, true},
		},
		"completed": {
			why:      "all are updated and ready",
			replicas: 2,
			set:      changes{two},
			pods:     parse("0:2 1:2"),
			want:     counters{2, 2, 2, 2, 2, 2, 2, true},
		},
		"not ready": {
			why:      "one is updated, and not ready",
			replicas: 2,
			set:      changes{two},
			pods:     append(parse("0:2"), pod("web-1", "web:2", podtest.NotReady)),
			want:     counters{2, 1, 1, 0, 2, 1, 1, false},
		},
		"absent": {
			"the pods that the partition keeps are absent for a moment; they come back at the current revision", 3,
			changes{two, partition(2)},
			parse("2:2"),
			counters{1, 1, 1, 0, 1, 1, 1, false},
		},
		"none, partition": {"no pod has shown that the revision works", 0, changes{two, partition(1)}, nil, counters{}},
		"OnDelete, completed": {
			why:      "the current revision is that of rolling updates",
			replicas: 1,
			set:      changes{two, onDelete},
			pods:     parse("0:2"),
			want:     counters{1, 1, 1, 0, 1, 1, 1, false},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, c.replicas, c.set...)
			o.pods(c.pods...)
			s, p := o.plan()
			status := p.status(s)
			got := counters{
				status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.CurrentReplicas, status.UpdatedReplicas,
				status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas, status.CurrentRevision == status.UpdateRevision,
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if status.LabelSelector != "app=web" || status.ObservedGeneration != 1 || status.CollisionCount == nil {
				t.Errorf("status %+v", status)
			}
		})
	}
}

// Claims of pods in slots are counted by template.
func TestStatusOfClaims(t *testing.T) {
	o := observe(t, 3, withClaims(keeps, keeps), func(s *v1beta1.StatefulSet) {
		logs := s.Spec.VolumeClaimTemplates[0].DeepCopy()
		logs.Name = "logs"
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, *logs)
	})
	o.pods(mounting(parse("0:1 1:1 2:1 3:1")...)...)
	growing := claimOf("web-1", "1Gi")
	growing.Status.Capacity = nil
	for _, claim := range []*corev1.PersistentVolumeClaim{
		claimOf("web-0", "2Gi"), growing, claimOf("web-2", "1Mi"), claimOf("web-3", "1Gi"),
	} {
		o.put(claim, "")
	}
	s, p := o.plan()
	want := []v1beta1.VolumeClaimStatus{
		{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 1}, {VolumeClaimName: "logs"},
	}
	if diff := cmp.Diff(want, p.status(s).VolumeClaims); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A condition of failure is kept, with a reason, and becomes False when the writes succeed again.
func TestConditions(t *testing.T) {
	early := metav1.NewTime(podtest.Noon().Add(-time.Hour))
	noon := metav1.NewTime(podtest.Noon())
	refused := errors.New("quota exceeded")
	const text = "StatefulPodControl failed to create Pod error: quota exceeded"
	failed := appsv1.StatefulSetCondition{
		Type:               v1beta1.FailedCreatePod,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: early,
		Reason:             "CreateFailed",
		Message:            text,
	}
	cases := map[string]struct {
		why  string
		have []appsv1.StatefulSetCondition
		err  error
		want []appsv1.StatefulSetCondition
	}{
		"none": {"no condition is added without a failure", nil, nil, nil},
		"first": {
			why: "the failure is reported",
			err: refused,
			want: []appsv1.StatefulSetCondition{{
				Type:               v1beta1.FailedCreatePod,
				Status:             corev1.ConditionTrue,
				LastTransitionTime: noon,
				Reason:             "CreateFailed",
				Message:            text,
			}},
		},
		"succeeded": {
			why:  "the condition is False",
			have: []appsv1.StatefulSetCondition{failed},
			want: []appsv1.StatefulSetCondition{{
				Type: v1beta1.FailedCreatePod, Status: corev1.ConditionFalse, LastTransitionTime: noon, Reason: "PodsCreated",
			}},
		},
		"the reference's": {
			why: "a condition without a reason gets one",
			have: []appsv1.StatefulSetCondition{{
				Type: v1beta1.FailedCreatePod, Status: corev1.ConditionTrue, LastTransitionTime: early, Message: text,
			}},
			err:  refused,
			want: []appsv1.StatefulSetCondition{failed},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(t, 0)
			o.set.Status.Conditions = c.have
			s, p := o.plan()
			p.ScaleErr = c.err
			if diff := cmp.Diff(c.want, p.status(s).Conditions); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
	again := workloads.Conditions{{
		Type: "FailedCreatePod", Status: corev1.ConditionFalse, Reason: "PodsCreated", LastTransitionTime: early,
	}}
	if again.Judge(creation(), refused, podtest.Noon()); again[0].LastTransitionTime != noon ||
		again[0].Status != corev1.ConditionTrue {
		t.Errorf("a failure after a success is a transition: %+v", again[0])
	}
}

// An image that cannot be pulled is reported at once. TestStall of internal/workloads has the other cases.
func TestStalled(t *testing.T) {
	o, pods := observe(t, 1), parse("0:1-")
	pods[0].Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}
	o.pods(pods...)
	s, p := o.plan()
	got := workloads.Converted[workloads.Conditions](p.status(s).Conditions).Find(workloads.Stalled)
	if got == nil || got.Status != corev1.ConditionTrue || got.Reason != "ImagePullFailed" {
		t.Errorf("condition %+v", got)
	}
}

// A spec whose revision could not be stored is not observed: a takeover may record fields of an observed spec at the
// revision in the status. A spec that cannot be used is observed, and waits for another one.
func TestStatusOfFailure(t *testing.T) {
	o := observe(t, 1)
	o.set.Generation, o.set.Status.ObservedGeneration = 2, 1
	s, _ := o.plan()
	for want, invalid := range map[int64]error{1: nil, 2: errors.New("unusable")} {
		s.Invalid = invalid
		got, ok := s.failed(errors.New("exceeded quota")).Object.(*v1beta1.StatefulSet)
		if !ok || got.Status.ObservedGeneration != want || len(got.Status.Conditions) == 0 {
			t.Errorf("invalid %v: status %+v", invalid, got.Status)
		}
	}
}
