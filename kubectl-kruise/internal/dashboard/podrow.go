package dashboard

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/explain"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
)

// podRow is what a page gets of a pod. Fields without a value are left out: there may be thousands of pods.
type podRow struct {
	Name     string `json:"n"`
	Revision string `json:"r,omitempty"`
	// State is ready, unready, pending, failing, succeeded or terminating.
	State string `json:"s"`
	Why   string `json:"w,omitempty"`
	// Lifecycle is the state of lifecycle hooks, where a hook or an update holds the pod.
	Lifecycle string `json:"l,omitempty"`
	Restarts  int32  `json:"k,omitempty"`
	Node      string `json:"o,omitempty"`
	Created   int64  `json:"c"`
	// Since is when the pod became ready or unready.
	Since int64 `json:"t,omitempty"`
}

// podOf returns the row of a pod.
func podOf(o *unstructured.Unstructured, revisionOf func(*corev1.Pod) string) any {
	pod, err := kinds.Read[corev1.Pod](o)
	if err != nil {
		return brokenRow(o, err)
	}
	row := podRow{
		Name: pod.Name, Revision: short(revision.Short(revisionOf(pod))), State: stateOf(pod), Node: pod.Spec.NodeName,
		Created: seconds(&pod.CreationTimestamp),
	}
	if c := lifecycle.ConditionOf(pod, corev1.PodReady); c != nil {
		row.Since = seconds(&c.LastTransitionTime)
	}
	if state := lifecycle.StateOf(pod); state != "" && state != kruise.LifecycleStateNormal {
		row.Lifecycle = short(string(state))
	}
	for i := range pod.Status.ContainerStatuses {
		row.Restarts += pod.Status.ContainerStatuses[i].RestartCount
	}
	if row.State != stateReady && row.State != stateSucceeded {
		row.Why = short(strings.Join(explain.NotReady(pod), "; "))
	}
	return row
}

// The states of pods.
const (
	stateReady       = "ready"
	stateUnready     = "unready"
	statePending     = "pending"
	stateFailing     = "failing"
	stateSucceeded   = "succeeded"
	stateTerminating = "terminating"
)

func stateOf(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return stateTerminating
	case pod.Status.Phase == corev1.PodSucceeded:
		return stateSucceeded
	case pod.Status.Phase == corev1.PodFailed || slices.ContainsFunc(pod.Status.ContainerStatuses, fails) ||
		slices.ContainsFunc(pod.Status.InitContainerStatuses, fails):
		return stateFailing
	case podutils.IsPodReady(pod):
		return stateReady
	case pod.Status.Phase == corev1.PodRunning:
		return stateUnready
	default:
		return statePending
	}
}

// fails reports whether a container cannot start, or ends again and again.
func fails(c corev1.ContainerStatus) bool {
	if c.State.Waiting == nil {
		return false
	}
	reason := c.State.Waiting.Reason
	return strings.HasSuffix(reason, "BackOff") || strings.HasPrefix(reason, "Err") ||
		strings.HasSuffix(reason, "Error") || reason == "InvalidImageName"
}
