package execution_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/execution"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

func now() time.Time { return time.Unix(1_800_000_000, 0) }

// plan plans a pass over ready pods of revision web-1 whose workload goes to web-2, which no running pod can.
func plan(t *testing.T, pods int, change func(*workload.Input)) *workload.Pass {
	t.Helper()
	rev := func(name, host string) workload.Revision {
		data, err := revision.Encode(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{Hostname: host, Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return workload.Revision{Name: name, Data: data}
	}
	in := workload.Input{
		Scale:  scale.Input{Now: now(), Limits: scale.Limits{Replicas: int32(pods), MaxUnavailable: int32(pods)}},
		Update: rev("web-2", "b"), Current: rev("web-1", "a"), Strategy: workload.InPlaceOnly,
	}
	var all []*corev1.Pod
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%02d", i), UID: "x", Labels: map[string]string{kruise.PodRevisionLabelKey: "web-1"}}}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		all = append(all, pod)
	}
	in.Instances = workload.Pods(all)
	if change != nil {
		change(&in)
	}
	pass, err := workload.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return pass
}

// finish makes all pods finished ones, which a pass deletes.
func finish(in *workload.Input) {
	for _, i := range in.Instances {
		i.Pods[0].Status.Phase = corev1.PodFailed
	}
	in.Scale.Limits.Replicas = 0
}

func TestErrors(t *testing.T) {
	pass := plan(t, 10, func(in *workload.Input) { in.Scale.Limits.Replicas = 11 }) // nothing builds the pod that is missing
	execution.Run(t.Context(), pass, now, func(context.Context, *workload.Write) (write.Object, error) { return nil, nil })
	var called []string
	scaling, updating := execution.Errors(pass, func(f workload.Failure) { called = append(called, f.Object) })
	if scaling == nil || !strings.Contains(scaling.Error(), "create pods") {
		t.Errorf("error about the number of pods: %v", scaling)
	}
	if updating == nil || !strings.Contains(updating.Error(), "pod web-00 can only be updated in place: ") || !strings.Contains(updating.Error(), "2 more") {
		t.Errorf("error about updates: %v", updating)
	}
	if len(called) != workload.MaxErrors || slices.Contains(called, "web-09") {
		t.Errorf("called for %v, want those that the error names", called)
	}
	if scaling, updating := execution.Errors(plan(t, 1, nil), nil); scaling != nil || updating != nil {
		t.Errorf("a pass without failures: %v, %v", scaling, updating)
	}
}

// One refused deletion stops no other, and is the only failure. A panic is a failure of its write.
func TestRun(t *testing.T) {
	pass := plan(t, 5, finish)
	execution.Run(t.Context(), pass, now, func(_ context.Context, w *workload.Write) (write.Object, error) {
		switch w.Pod.Name {
		case "web-00":
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, w.Pod.Name, errors.New("a policy"))
		case "web-01":
			panic("no such thing")
		}
		return nil, nil
	})
	var failed []string
	for _, f := range pass.Failures() {
		failed = append(failed, f.Object)
	}
	if slices.Sort(failed); !slices.Equal(failed, []string{"web-00", "web-01"}) {
		t.Errorf("failures of %v, want web-00 and web-01", failed)
	}
}

func TestOutdated(t *testing.T) {
	outdated := plan(t, 1, finish)
	execution.Run(t.Context(), outdated, now, func(_ context.Context, w *workload.Write) (write.Object, error) {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, w.Pod.Name, errors.New("another UID"))
	})
	count, passes := 0, 0
	var err error
	for ; err == nil && passes < 100; passes++ {
		count, err = execution.Outdated(outdated, count)
	}
	if !errors.Is(err, execution.ErrOutdated) || passes != 11 {
		t.Errorf("after %d passes: %v", passes, err)
	}
	if count, err = execution.Outdated(plan(t, 1, nil), count); count != 0 || err != nil {
		t.Errorf("a pass whose writes apply: %d, %v", count, err)
	}
}

func TestAsking(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}}
	refused := errors.New("no room")
	var sent []workload.Action
	send := execution.Asking(func(_ context.Context, pods []*corev1.Pod) error {
		if len(pods) != 1 || pods[0] != pod {
			t.Errorf("asked for %v", pods)
		}
		return refused
	}, func(_ context.Context, w *workload.Write) (write.Object, error) {
		sent = append(sent, w.Action)
		return pod, nil
	})
	if _, err := send(t.Context(), &workload.Write{Action: workload.ActionAsk, Asked: []*corev1.Pod{pod}}); !errors.Is(err, refused) {
		t.Errorf("the answer to the question is %v", err)
	}
	if o, err := send(t.Context(), &workload.Write{Action: workload.ActionUpdate}); err != nil || o != write.Object(pod) || !slices.Equal(sent, []workload.Action{workload.ActionUpdate}) {
		t.Errorf("the write is answered %v, %v; sent %v", o, err, sent)
	}
}
