package rollout_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/sidecar"
)

// meshSet is a set with one sidecar, for pods with app=shop. One of them is to stay as it is.
func meshSet(image string) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "mesh"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	set.Spec.Containers = []v1beta1.SidecarContainer{{Container: corev1.Container{Name: "proxy", Image: image}}}
	set.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromInt32(1))
	set.Default()
	return set
}

// shopPod is a ready pod that got a set at its creation.
func shopPod(name string, set *v1beta1.SidecarSet, now time.Time) (*corev1.Pod, error) {
	parsed, err := sidecar.Parse(set)
	if err != nil {
		return nil, err
	}
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "shop"},
	}}
	bare.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
	injection, err := sidecar.Inject(bare, []*sidecar.Set{parsed}, sidecar.Options{Now: now})
	if err != nil {
		return nil, err
	}
	pod := injection.Pod
	pod.Spec.NodeName = "node"
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "sha256:" + c.Image, ContainerID: "containerd://" + c.Name, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	return pod, nil
}

// Three pods have a set, whose image changes. The partition keeps one pod.
func ExamplePlan() {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var pods []*corev1.Pod
	for _, name := range []string{"a", "b", "c"} {
		pod, err := shopPod(name, meshSet("proxy:1"), now.Add(-time.Hour))
		if err != nil {
			fmt.Println(err)
			return
		}
		pods = append(pods, pod)
	}
	pass, err := rollout.Plan(rollout.Input{Set: meshSet("proxy:2"), Revision: "mesh-2", Pods: pods, Now: now})
	if err != nil {
		fmt.Println(err)
		return
	}
	for changes := pass.Next(); len(changes) > 0; changes = pass.Next() {
		for len(changes) > 0 {
			c := changes[0]
			fmt.Println(c.Action, c.Pod.Name)
			answered := applied(c) // an API server's answer
			changes = append(pass.Answer(now, c, answered, nil), changes[1:]...)
		}
	}
	for _, n := range pass.Notes() {
		fmt.Println(n)
	}
	// Output:
	// Update a
	// Mark a
	// Partition: 1 pod waits to be updated: the partition keeps as many
	// UpdateLimited: 1 pod waits to be updated (updated and not ready: 1, at most: 1)
}
