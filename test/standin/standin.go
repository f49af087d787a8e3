// Package standin plays the scheduler and the kubelets where there are none: at the control-plane level of
// test/cluster. Pods are bound, their containers run, a container whose image changes restarts, and deleted pods go.
//
// It is as fast as the API server, unless its containers take time to start. For what a kubelet really does use the
// real nodes.
package standin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/workload/eligible"
)

// Kubelet reconciles pods of a namespace.
type Kubelet struct {
	// Client reads and writes live or cached.
	Client client.Client
	// Namespace of the pods; empty for all.
	Namespace string
	// Node that pods are bound to, or, where there are several, Nodes, which share the pods evenly.
	Node  string
	Nodes []string
	// Broken says whether an image cannot be run: its container waits for ever.
	Broken func(image string) bool
	// Unready says of a pod whose containers run whether it is kept from being ready, as by a probe that fails. It is
	// asked whenever the pod changes.
	Unready func(*corev1.Pod) bool
	// Rejects says whether the node has no room for a pod of which no container has run. The pod fails.
	Rejects func(*corev1.Pod) bool
	// Now is the clock; nil for time.Now.
	Now func() time.Time
	// Start is how long a container takes to start. With it, a deleted pod stays for its grace period. A kubelet with a
	// Start reads live.
	Start time.Duration

	mu sync.Mutex
	// due is when containers start that take time.
	due   map[string]time.Time
	bound int
}

// SetupWithManager registers the kubelet under a name that is unique in the process.
func (k *Kubelet) SetupWithManager(mgr ctrl.Manager) error {
	skip := true
	return ctrl.NewControllerManagedBy(mgr).Named("kubelet").For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, SkipNameValidation: &skip}).Complete(k)
}

// Reconcile brings one pod to life, or lets it go.
func (k *Kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if k.Namespace != "" && request.Namespace != k.Namespace {
		return ctrl.Result{}, nil
	}
	if err := k.Client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case pod.DeletionTimestamp != nil:
		if left := pod.DeletionTimestamp.Sub(k.now().Time); k.Start > 0 && left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
		err := k.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case pod.Spec.NodeName == "" && pod.Spec.SchedulerName != corev1.DefaultSchedulerName:
		return ctrl.Result{}, nil // another scheduler's
	case pod.Spec.NodeName == "":
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: cmp.Or(eligible.NodeOf(pod), k.node())}}
		return ctrl.Result{}, client.IgnoreNotFound(k.Client.SubResource("binding").Create(ctx, pod, binding))
	}
	before := pod.DeepCopy()
	changed, result := k.Run(pod), ctrl.Result{}
	if k.Start > 0 && !isTrue(pod, corev1.ContainersReady) {
		result.RequeueAfter = k.Start
	}
	if !changed {
		return result, nil
	}
	// As kubelets do: a patch, without a version.
	return result, client.IgnoreNotFound(k.Client.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)))
}

// node returns the node of the next pod.
func (k *Kubelet) node() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.Nodes) == 0 {
		return k.Node
	}
	k.bound++
	return k.Nodes[k.bound%len(k.Nodes)]
}

// starts reports whether a container is starting, for the first time or once more.
func (k *Kubelet) starts(container string) bool {
	if k.Start == 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now().Time
	if _, known := k.due[container]; !known {
		if k.due == nil {
			k.due = map[string]time.Time{}
		}
		k.due[container] = now.Add(k.Start)
	}
	return now.Before(k.due[container])
}

func (k *Kubelet) now() metav1.Time {
	if k.Now == nil {
		return metav1.Now()
	}
	return metav1.NewTime(k.Now().Truncate(time.Second))
}

// Run makes the status of a pod on a node what it should be, and reports whether that changed it.
func (k *Kubelet) Run(pod *corev1.Pod) bool {
	before := pod.Status.DeepCopy()
	if k.Rejects != nil && len(pod.Status.ContainerStatuses) == 0 && k.Rejects(pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "OutOfpods",
			"Pod was rejected: Node didn't have enough resource: pods"
		return !apiequality.Semantic.DeepEqual(before, &pod.Status)
	}
	pod.Status.Phase = corev1.PodRunning
	ready := true
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if at < 0 {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
			at = len(pod.Status.ContainerStatuses) - 1
		}
		ready = k.start(pod, c, &pod.Status.ContainerStatuses[at]) && ready
	}
	ready = ready && (k.Unready == nil || !k.Unready(pod))
	k.condition(pod, corev1.PodInitialized, true)
	k.condition(pod, corev1.ContainersReady, ready)
	for _, gate := range pod.Spec.ReadinessGates {
		ready = ready && isTrue(pod, gate.ConditionType)
	}
	k.condition(pod, corev1.PodReady, ready)
	return !apiequality.Semantic.DeepEqual(before, &pod.Status)
}

// start runs a container's image, if it does not run already.
func (k *Kubelet) start(pod *corev1.Pod, c *corev1.Container, s *corev1.ContainerStatus) bool {
	if s.Image == c.Image && s.Ready {
		return true
	}
	if k.Broken != nil && k.Broken(c.Image) {
		s.Ready = false
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
		return false
	}
	if k.starts(fmt.Sprint(pod.UID, c.Name, s.ContainerID, c.Image)) {
		s.Ready = false
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		return false
	}
	if s.ContainerID != "" {
		s.RestartCount++
	}
	s.Image, s.ImageID = c.Image, "sha256:"+strings.ReplaceAll(c.Image, ":", "-")
	s.ContainerID = fmt.Sprintf("standin://%s-%s-%d", pod.UID, c.Name, s.RestartCount)
	s.Ready, s.State = true, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: k.now()}}
	return true
}

func (k *Kubelet) condition(pod *corev1.Pod, t corev1.PodConditionType, is bool) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == t {
			if c.Status != status {
				*c = corev1.PodCondition{Type: t, Status: status, LastTransitionTime: k.now()}
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: t, Status: status, LastTransitionTime: k.now(),
	})
}

func isTrue(pod *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}
