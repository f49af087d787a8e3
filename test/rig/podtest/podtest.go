// Package podtest builds pods for tests of what a workload does with them.
//
//	podtest.New("web-a", "web:1", podtest.State(kruise.LifecycleStatePreparingDelete), podtest.NotReady)
package podtest

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Noon is the time of a test whose pods are made here.
func Noon() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

// Container is the name of the only container.
const Container = "web"

// Change changes a pod.
type Change func(*corev1.Pod)

// New returns a pod that has run an image on a node, and has been ready and Normal, since an hour before Noon.
func New(name, image string, changes ...Change) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			UID:               types.UID("uid-" + name),
			ResourceVersion:   "1",
			CreationTimestamp: metav1.NewTime(Noon().Add(-time.Hour)),
			Labels:            map[string]string{kruise.LifecycleStateKey: string(kruise.LifecycleStateNormal)},
			Annotations:       map[string]string{},
		},
		Spec: corev1.PodSpec{
			NodeName:      "node-1",
			SchedulerName: corev1.DefaultSchedulerName,
			Containers:    []corev1.Container{{Name: Container, Image: image}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: Container, Image: image, ImageID: "sha256:" + image, ContainerID: "containerd://" + name, Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{
					StartedAt: metav1.NewTime(Noon().Add(-time.Hour)),
				}},
			}},
		},
	}
	inplace.EnsureReadinessGate(&pod.Spec, nil)
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, kruise.InPlaceUpdateReady} {
		setCondition(pod, t, corev1.ConditionTrue, Noon().Add(-time.Hour))
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func setCondition(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus, since time.Time) {
	c := lifecycle.ConditionOf(pod, t)
	if c == nil {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t})
		c = &pod.Status.Conditions[len(pod.Status.Conditions)-1]
	}
	c.Status, c.LastTransitionTime = status, metav1.NewTime(since)
}

// NotReady makes a pod not ready.
func NotReady(pod *corev1.Pod) {
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, Noon())
	setCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, Noon())
	pod.Status.ContainerStatuses[0].Ready = false
}

// ReadyFor makes a pod ready since a time before Noon.
func ReadyFor(d time.Duration) Change {
	return func(pod *corev1.Pod) { setCondition(pod, corev1.PodReady, corev1.ConditionTrue, Noon().Add(-d)) }
}

// Unscheduled makes a pod one that was created and is on no node.
func Unscheduled(pod *corev1.Pod) {
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	pod.Labels[kruise.LifecycleStateKey] = string(kruise.LifecycleStatePreparingNormal)
}

// Phase gives a pod a phase.
func Phase(phase corev1.PodPhase) Change {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// Terminating makes a pod one whose deletion was asked for some time before Noon.
func Terminating(ago time.Duration) Change {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: Noon().Add(-ago)} }
}

// State gives a pod a lifecycle state.
func State(state kruise.LifecycleState) Change {
	return Label(kruise.LifecycleStateKey, string(state))
}

// Label gives a pod a label.
func Label(key, value string) Change {
	return func(pod *corev1.Pod) { maps.Copy(pod.Labels, map[string]string{key: value}) }
}

// Finalizer gives a pod a finalizer.
func Finalizer(name string) Change {
	return func(pod *corev1.Pod) { pod.Finalizers = append(pod.Finalizers, name) }
}

// Node puts a pod on a node.
func Node(name string) Change {
	return func(pod *corev1.Pod) { pod.Spec.NodeName = name }
}
