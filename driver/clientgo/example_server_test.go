package clientgo_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
)

// newClient is a client whose pods get a name and a UID as an API server gives them.
func newClient() kubernetes.Interface {
	client, created := fake.NewClientset(), 0
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Name = fmt.Sprint(pod.GenerateName, created)
		pod.UID, pod.Namespace = types.UID("uid-"+pod.Name), "default"
		created++
		return false, nil, nil
	})
	return client
}

// settle runs the containers of each pod, as a kubelet does.
func settle(ctx context.Context, pods typed.PodInterface) error {
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		image := pod.Spec.Containers[0].Image
		restarts := int32(0)
		if old := pod.Status.ContainerStatuses; len(old) > 0 {
			restarts = old[0].RestartCount
			if old[0].Image != image {
				restarts++
			}
		}
		pod.Spec.NodeName, pod.Status.Phase = "node-1", corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:         "app",
			Image:        image,
			ImageID:      "id-" + image,
			ContainerID:  fmt.Sprintf("c-%d", restarts),
			Ready:        true,
			RestartCount: restarts,
		}}
		gates := corev1.ConditionTrue
		for _, g := range pod.Spec.ReadinessGates {
			if condition(pod, g.ConditionType) != corev1.ConditionTrue {
				gates = corev1.ConditionFalse
			}
		}
		set(pod, corev1.ContainersReady, corev1.ConditionTrue)
		set(pod, corev1.PodReady, gates)
		if _, err := pods.Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func set(pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == t {
			c.Status = status
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t, Status: status})
}

// describe returns a line for each pod.
func describe(ctx context.Context, pods typed.PodInterface) string {
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	text := ""
	for i := range list.Items {
		pod := &list.Items[i]
		text += fmt.Sprintf("%s %s restarts: %d ready: %s\n", pod.Name, pod.Spec.Containers[0].Image,
			pod.Status.ContainerStatuses[0].RestartCount, condition(pod, corev1.PodReady))
	}
	return text
}
