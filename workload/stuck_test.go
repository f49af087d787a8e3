package workload_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Without what builds pods, or where building fails, the pass reports it, and goes on with updates.
func TestBuildFails(t *testing.T) {
	for _, build := range []func([]workload.Creation) ([][]write.Object, error){
		nil, func([]workload.Creation) ([][]write.Object, error) { return nil, errors.New("no template") },
	} {
		s := three(t)
		in := s.input()
		in.Scale.Limits.Replicas, in.Scale.Limits.MaxUnavailable, in.Build = 4, 2, build
		pass := s.run(in)
		if failures := pass.Failures(); len(failures) != 1 || !failures[0].Scaling ||
			!slices.Equal(s.sent, []string{"Unready a", "Update a"}) {
			t.Errorf("failures %v, sent %v", failures, s.sent)
		}
	}
}

func TestStuck(t *testing.T) {
	waits := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Ready = false
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "why"}
		}
	}
	crashed := func(p *corev1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.Ready, s.RestartCount, s.LastTerminationState.Terminated = false, 3, &corev1.ContainerStateTerminated{ExitCode: 1}
	}
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"ready: a pod that serves is not stuck":       {func(*corev1.Pod) {}, ""},
		"creating: a container that is created waits": {waits("ContainerCreating"), ""},
		"pull: an image cannot be pulled": {
			waits("ErrImagePull"), "ImagePullFailed a: container app cannot pull image web:1",
		},
		"pull back-off: the note stays while the node tries again": {
			waits("ImagePullBackOff"),
			"ImagePullFailed a: container app cannot pull image web:1",
		},
		"config: a config map is missing": {
			waits("CreateContainerConfigError"),
			"ContainerConfigError a: container app cannot be created: why",
		},
		"crashing: a container fails again and again": {
			crashed, "ContainerCrashing a: container app fails with exit code 1",
		},
		"crash back-off: the note stays between two attempts": {func(p *corev1.Pod) {
			waits("CrashLoopBackOff")(p)
			crashed(p)
		}, "ContainerCrashing a: container app fails with exit code 1"},
		"unschedulable: no node has room": {func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status.Conditions = []corev1.PodCondition{{
				Type:    corev1.PodScheduled,
				Status:  corev1.ConditionFalse,
				Reason:  corev1.PodReasonUnschedulable,
				Message: "0/3 nodes are available",
			}}
		}, "PodUnschedulable a: 0/3 nodes are available"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := ready("a", "web-1", "web:1")
			c.change(pod)
			n, stuck := workload.Stuck(pod)
			if stuck != (c.want != "") || stuck && (n.String() != c.want || n.Level != note.Blocked) {
				t.Errorf("got %q, want %q", n, c.want)
			}
		})
	}
}

// The error of many failures is short, and the same whatever the order of the answers.
func TestErr(t *testing.T) {
	var failures []workload.Failure
	for i := range 20 {
		failures = append(failures, workload.Failure{Object: fmt.Sprintf("p%02d", i), Err: fmt.Errorf("p%02d fails", i)})
	}
	if err := workload.Err(failures); err == nil || len(strings.Split(err.Error(), "\n")) != 9 ||
		!strings.HasSuffix(err.Error(), "12 more") {
		t.Errorf("%v", err)
	}
	if workload.Err(nil) != nil {
		t.Error("no failures are an error")
	}
}

// Nothing is written for pods with nil maps, nil pods and unknown states.
func TestOddInput(t *testing.T) {
	odd := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "odd"}}
	in := workload.Input{Instances: []workload.Instance{
		{Name: "none"}, {Name: "nil", Pods: []workload.Pod{{}}}, {Name: "odd", Pods: []workload.Pod{{Pod: odd}}},
	}}
	in.Scale.Limits.Replicas = 1
	in.Strategy, in.Policy = "Unknown", inplace.Policy{Unready: "Unknown"}
	s := newServer(t, odd)
	if pass := s.run(in); len(pass.Pods()) != 1 {
		t.Errorf("%d pods", len(pass.Pods()))
	}
}
