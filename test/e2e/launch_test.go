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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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

func ordered(pod *corev1.Pod) {
	pod.Annotations = map[string]string{kruise.ContainerLaunchPriorityKey: "Ordered"}
}

// Containers start one after the other, as they are written.
func (m *deployed) testLaunchInOrder(t *testing.T) {
	started(t, m.launched(t, []string{"a", "b", "c"}, ordered), "a", "b", "c")
}

// Those of the highest priority start first, and together.
func (m *deployed) testLaunchByPriority(t *testing.T) {
	pod := m.launched(t, []string{"a", "b", "c"}, func(pod *corev1.Pod) {
		for i, priority := range []string{"-3", "10", "10"} {
			pod.Spec.Containers[i].Env = []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnvName, Value: priority}}
		}
	})
	started(t, pod, "b c", "a")
	bad := held(pod.Namespace, "bad", nil)
	bad.Spec.Containers = append(bad.Spec.Containers, corev1.Container{
		Name: "other", Image: "none", Env: []corev1.EnvVar{{Name: kruise.ContainerLaunchPriorityEnvName, Value: "abc"}},
	})
	err := m.Client.Create(t.Context(), bad)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.containers[1].env[0]") {
		t.Errorf("a priority that is no number: %v", err)
	}
}

// A pod of the same name is ordered as well, whatever is left of the one before; and a container that fails later comes
// back, also if the barrier is lost.
func (m *deployed) testLaunchAgain(t *testing.T) {
	first := m.launched(t, []string{"a", "b"}, ordered)
	barrier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "pod-barrier"}}
	if err := m.Client.Get(t.Context(), client.ObjectKeyFromObject(barrier), barrier); err != nil {
		t.Fatal(err)
	}
	if err := m.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := first.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name, Annotations: map[string]string{
		kruise.ContainerLaunchPriorityKey: "Ordered",
	}}
	second.Spec.NodeName, second.Status = "", corev1.PodStatus{}
	eventually(t, func(ctx context.Context) error { return m.Client.Create(ctx, second.DeepCopy()) })
	eventually(t, func(context.Context) error {
		if second = m.get(t, first.Namespace, first.Name); !ready(second) ||
			second.Annotations[kruise.ContainerLaunchPriorityCompletedKey] != "true" {
			return fmt.Errorf("not ready: %+v", second.Status.ContainerStatuses)
		}
		return nil
	})
	started(t, second, "a", "b")

	if err := m.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: first.Namespace, Name: "pod-barrier",
	}}); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if said, err := m.Kubectl(t.Context(), "exec", "-n", second.Namespace, second.Name, "-c", "b", "--",
		"kill", "1"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	eventually(t, func(context.Context) error {
		now := m.get(t, first.Namespace, first.Name)
		if statuses(now)["b"].RestartCount == 0 || !ready(now) {
			return fmt.Errorf("not ready: %+v", now.Status.ContainerStatuses)
		}
		return nil
	})
}

// job makes a Job of a main container that ends, and of sidecars.
func (m *deployed) job(t *testing.T, change func(*corev1.PodSpec)) *batchv1.Job {
	t.Helper()
	sleeper := m.page(t, "sleeper").Name
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace(t), Name: "job"}}
	job.Spec.BackoffLimit = new(int32)
	spec := &job.Spec.Template.Spec
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	spec.Containers = []corev1.Container{{Name: "main", Image: sleeper, Command: []string{"sleep", "2"}}}
	sidecar := corev1.Container{Name: "sidecar", Image: sleeper} // serves until it gets a signal
	spec.Containers = append(spec.Containers, sidecar)
	change(spec)
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
	return job
}

// A Job ends although its sidecar would go on.
func (m *deployed) testJobSidecar(t *testing.T) {
	job := m.job(t, func(spec *corev1.PodSpec) {
		spec.Containers[1].Env = []corev1.EnvVar{{Name: kruise.TerminateSidecarEnvName, Value: "true"}}
	})
	if requests := m.requests(t, job.Namespace); len(requests) != 1 ||
		!strings.HasPrefix(requests[0].Name, "sidecar-termination-") {
		t.Errorf("requests %+v, want one for the sidecar", requests)
	}
}

// A native sidecar is the kubelet's business.
func (m *deployed) testJobNativeSidecar(t *testing.T) {
	job := m.job(t, func(spec *corev1.PodSpec) {
		sidecar := spec.Containers[1]
		sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		sidecar.Env = []corev1.EnvVar{{Name: kruise.TerminateSidecarEnvName, Value: "true"}}
		spec.InitContainers, spec.Containers = []corev1.Container{sidecar}, spec.Containers[:1]
	})
	if requests := m.requests(t, job.Namespace); len(requests) > 0 {
		t.Errorf("requests %+v for a container that ends by itself", requests)
	}
}

func (m *deployed) requests(t *testing.T, namespace string) []v1beta1.ContainerRecreateRequest {
	t.Helper()
	var list v1beta1.ContainerRecreateRequestList
	if err := m.Client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
