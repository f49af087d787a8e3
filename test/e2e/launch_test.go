//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
)

// slowly is what a container does for a second before it counts as started.
func slowly() *corev1.Lifecycle {
	return &corev1.Lifecycle{
		PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", "1"}}},
	}
}

// launched makes a pod of sleeping containers that start slowly, and waits until it is ready.
func (m *deployed) launched(t *testing.T, names []string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace(t), Name: "pod"}}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	sleeper := m.page(t, "sleeper").Name
	for _, name := range names {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name:      name,
			Image:     sleeper,
			Command:   []string{"sh", "-c", "trap 'exit 1' TERM; while sleep 0.1; do :; done"},
			Lifecycle: slowly(),
		})
	}
	change(pod)
	if err := m.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if pod = m.get(t, pod.Namespace, pod.Name); !ready(pod) {
			return fmt.Errorf("not ready: %+v", pod.Status.ContainerStatuses)
		}
		if pod.Annotations[kruise.ContainerLaunchPriorityCompletedKey] != "true" {
			return errors.New("it is not marked as completed")
		}
		return nil
	})
	return pod
}

// started compares when containers started: each of a group after all of the group before.
func started(t *testing.T, pod *corev1.Pod, groups ...string) {
	t.Helper()
	is := statuses(pod)
	for i := range groups[1:] {
		for before := range strings.FieldsSeq(groups[i]) {
			for after := range strings.FieldsSeq(groups[i+1]) {
				if a, b := is[before].State.Running.StartedAt, is[after].State.Running.StartedAt; !a.Before(&b) {
					t.Errorf("%s started at %s, %s at %s", before, a, after, b)
				}
			}
		}
	}
	for name, status := range is {
		if status.RestartCount != 0 {
			t.Errorf("%s restarted %d times", name, status.RestartCount)
		}
	}
}

// testLaunch: containers of the highest priority start first, and together.
func (m *deployed) testLaunch(t *testing.T) {
	started(t, m.launched(t, []string{"a", "b", "c"}, func(pod *corev1.Pod) {
		for i, priority := range []string{"-3", "10", "10"} {
			pod.Spec.Containers[i].Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnvName, Value: priority}}
		}
	}), "b c", "a")
}

// testJob: a Job ends although its sidecar would go on.
func (m *deployed) testJob(t *testing.T) {
	server := m.page(t, "sleeper").Name // serves until it gets a signal
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace(t), Name: "job"}}
	job.Spec.BackoffLimit = new(int32)
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To(int64(1)),
		Containers: []corev1.Container{
			{Name: "main", Image: server, Command: []string{"sleep", "2"}},
			{Name: "sidecar", Image: server, Env: []corev1.EnvVar{{Name: kruise.TerminateSidecarEnvName, Value: "true"}}},
		},
	}
	if err := m.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		if err := m.Client.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.Status.Succeeded != 1 {
			return fmt.Errorf("%+v", job.Status)
		}
		return nil
	})
}
