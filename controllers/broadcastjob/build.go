package broadcastjob

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// class is how far a pod is. The order is that in which one of several pods of a node counts as the pod of the node:
// the job waits for each pod.
type class int

const (
	active   class = iota
	exceeded       // restarted too often: counts as failed, and has not ended
	succeeded
	failed
	ending // deleted, and neither succeeded nor failed
)

// classOf returns the class of a pod of a job.
func classOf(job *broadcastJob, pod *corev1.Pod) class {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case pod.Status.Phase == corev1.PodFailed:
		return failed
	case pod.DeletionTimestamp != nil:
		return ending
	case pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure &&
		restarts(pod) > int64(max(job.Spec.FailurePolicy.RestartLimit, 0)):
		return exceeded
	}
	return active
}

// restarts returns how often the containers of a pod have restarted, which the restart limit of the failure policy
// bounds.
func restarts(pod *corev1.Pod) (total int64) {
	for i := range pod.Status.InitContainerStatuses {
		total += int64(pod.Status.InitContainerStatuses[i].RestartCount)
	}
	for i := range pod.Status.ContainerStatuses {
		total += int64(pod.Status.ContainerStatuses[i].RestartCount)
	}
	return total
}

// member is a pod of the job, classified.
type member struct {
	*corev1.Pod
	class class
}

// rank orders the pods of a node: the first one counts as the pod of the node.
func rank(a, b member) int {
	bound := func(m member) int {
		if m.Spec.NodeName != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.class, b.class), cmp.Compare(bound(a), bound(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name),
	)
}

const (
	// nameLength is the longest name of a pod that is also its host name.
	nameLength = 63
	// hashLength is how many characters distinguish the pods of a job, at five bits each.
	hashLength = 10
)

// PodName returns the name of the pod of a node: the name of the job, and a hash of its UID and of the node.
func PodName(job *v1beta1.BroadcastJob, node string) string {
	sum := sha256.Sum256([]byte(string(job.UID) + "/" + node))
	hash := strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:hashLength]
	name := job.Name[:min(len(job.Name), nameLength-hashLength-1)]
	return strings.TrimRight(name, "-.") + "-" + hash
}

// newPod returns the pod of a node.
func (s *snapshot) newPod(node string) *corev1.Pod {
	job := s.job
	pod := workload.NewPod(&job.Spec.Template, workload.OwnedBy(job, gvk(), labels.Set{
		kruise.BroadcastJobNameKey: job.Name, kruise.BroadcastJobControllerUIDKey: string(job.UID),
	}), PodName(job, node))
	if s.bind {
		pod.Spec.NodeName = node
		return pod
	}
	eligible.Pin(&pod.Spec, node)
	return pod
}
