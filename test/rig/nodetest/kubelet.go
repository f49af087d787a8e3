package nodetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Stay is a finalizer of pods that the kubelet leaves alone once they are deleted.
const Stay = "test.kruisekit.dev/stay"

// Run keeps the containers of the node's pods in a namespace running until the context ends.
func (n *Node) Run(ctx context.Context, c client.WithWatch, namespace string) error {
	watching, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer watching.Stop()
	pods := map[types.UID]*corev1.Pod{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.changes:
		case e, ok := <-watching.ResultChan():
			if !ok {
				return ended(ctx)
			}
			n.learn(pods, e)
		}
		// What is known of pods comes before what is done with containers.
		for known := false; !known; {
			select {
			case e, ok := <-watching.ResultChan():
				if !ok {
					return ended(ctx)
				}
				n.learn(pods, e)
			default:
				known = true
			}
		}
		for _, pod := range pods {
			if err := n.sync(ctx, c, pod); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
		}
	}
}

func ended(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	default:
		return errors.New("the watch of pods has ended")
	}
}

// learn takes note of a pod of the node.
func (n *Node) learn(pods map[types.UID]*corev1.Pod, e watch.Event) {
	pod, ok := e.Object.(*corev1.Pod)
	switch {
	case !ok || pod.Spec.NodeName != n.name:
	case e.Type == watch.Deleted:
		delete(pods, pod.UID)
		n.remove(pod.UID)
	default:
		pods[pod.UID] = pod
	}
}

// remove drops the containers of a pod.
func (n *Node) remove(pod types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.containers = slices.DeleteFunc(n.containers, func(c cri.Container) bool { return c.PodUID() == string(pod) })
}

// sync starts the containers of a pod that do not run, and writes the status of the pod.
func (n *Node) sync(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		if slices.Contains(pod.Finalizers, Stay) {
			return nil
		}
		err := c.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		if apierrors.IsConflict(err) {
			return nil // it is gone, and another one has its name
		}
		return err
	}
	for i := range pod.Spec.Containers {
		last := n.newest(pod.UID, pod.Spec.Containers[i].Name)
		if last == nil || last.State == cri.Exited && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			n.start(pod, &pod.Spec.Containers[i])
		}
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP, pod.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	pod.Status.ContainerStatuses = nil
	ready := true
	for i := range pod.Spec.Containers {
		status := n.status(pod.UID, &pod.Spec.Containers[i])
		ready = ready && status.Ready
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	condition(pod, corev1.ContainersReady, ready)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
	}
	condition(pod, corev1.PodReady, ready)
	if equality.Semantic.DeepEqual(before.Status, pod.Status) {
		return nil
	}
	return c.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))
}

// newest is the latest container of a name; nil for none.
func (n *Node) newest(pod types.UID, name string) *cri.Container {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range slices.Backward(n.containers) {
		if c.PodUID() == string(pod) && c.Name == name {
			return &c
		}
	}
	return nil
}

func (n *Node) status(pod types.UID, spec *corev1.Container) corev1.ContainerStatus {
	c := n.newest(pod, spec.Name)
	restarts, _ := c.RestartCount()
	started := c.State == cri.Running
	status := corev1.ContainerStatus{
		Name:         c.Name,
		Image:        spec.Image,
		ImageID:      "sha256:" + spec.Image,
		ContainerID:  Engine + "://" + c.ID,
		RestartCount: restarts,
		Started:      &started,
	}
	if !started {
		status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: c.ExitCode, ContainerID: status.ContainerID}
		return status
	}
	status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.StartedAt.Truncate(time.Second))}
	status.Ready = time.Since(c.StartedAt) >= n.ways[c.Name].Slow
	return status
}

func condition(pod *corev1.Pod, t corev1.PodConditionType, is bool) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: t})
		i = len(pod.Status.Conditions) - 1
	}
	if c := &pod.Status.Conditions[i]; c.Status != status {
		*c = corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.Now()}
	}
}
