package workloads

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
	"github.com/kruisekit/kruisekit/driver"
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
		data, err := revision.Encode(&corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Hostname: host, Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
		}})
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
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%02d", i), UID: "x", Labels: map[string]string{kruise.PodRevisionLabelKey: "web-1"},
		}}
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

// run answers each write of a pass.
func run(t *testing.T, pass *workload.Pass, answer func(*write.Write) error) {
	t.Helper()
	_ = driver.Run(t.Context(), pass,
		driver.Options[*workload.Write]{Send: func(_ context.Context, w *write.Write) (write.Object, error) {
			return nil, answer(w)
		}})
}

func TestErrors(t *testing.T) {
	// nothing builds the pod that is missing
	pass := plan(t, 10, func(in *workload.Input) { in.Scale.Limits.Replicas = 11 })
	run(t, pass, func(*write.Write) error { return nil })
	impossible, scaling, updating := failures(pass)
	var called []string
	for _, f := range impossible {
		called = append(called, f.Object)
	}
	if scaling == nil || !strings.Contains(scaling.Error(), "create pods") {
		t.Errorf("error about the number of pods: %v", scaling)
	}
	if updating == nil || !strings.Contains(updating.Error(), "pod web-00 can only be updated in place: ") ||
		!strings.Contains(updating.Error(), "2 more") {
		t.Errorf("error about updates: %v", updating)
	}
	if len(called) != workload.MaxErrors || slices.Contains(called, "web-09") {
		t.Errorf("called for %v, want those that the error names", called)
	}
	if _, scaling, updating := failures(plan(t, 1, nil)); scaling != nil || updating != nil {
		t.Errorf("a pass without failures: %v, %v", scaling, updating)
	}
}

func TestOutdated(t *testing.T) {
	late := plan(t, 1, finish)
	run(t, late, func(w *write.Write) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, w.Object.GetName(), errors.New("another UID"))
	})
	count, passes := 0, 0
	var err error
	for ; err == nil && passes < 100; passes++ {
		count, err = outdated(late, count)
	}
	if !errors.Is(err, errOutdated) || passes != 11 {
		t.Errorf("after %d passes: %v", passes, err)
	}
	if count, err = outdated(plan(t, 1, nil), count); count != 0 || err != nil {
		t.Errorf("a pass whose writes apply: %d, %v", count, err)
	}
}
