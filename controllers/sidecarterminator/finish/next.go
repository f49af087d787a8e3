package finish

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// EventReason is the reason of the event of an action.
const EventReason = "SidecarTerminator"

// Input is a pod as the controller sees it.
type Input struct {
	// Pod to finish.
	Pod *corev1.Pod
	// Node is that of the pod; nil where there is none.
	Node *corev1.Node
	// Request is the one with the name of RequestName; nil where there is none.
	Request *appsv1beta1.ContainerRecreateRequest
	// Now is the time of the decision.
	Now time.Time
}

// Action is the next step for a pod.
type Action struct {
	// Writes are sent in their order: the images or the status of the pod, the deletion of the former request, and the
	// creation of the next one. When one fails, the others wait for the next action. The patches contain the resource
	// version of the pod: the API server refuses them, as a conflict, if anything of the pod was written meanwhile,
	// because a main container may have started again. A request that exists already is as good as a created one.
	Writes []*write.Write
	// Event is the text of the event of new images or of a new request, of which an action has one at most. Emit it after
	// the write.
	Event string
	// RequeueAfter is when the action may change although nothing else does; 0 for never.
	RequeueAfter time.Duration
	// Notes are the reasons.
	Notes []note.Note
}

// Concerns reports whether the main containers of a pod have finished, and its sidecars have not. Before that, Next
// ignores everything else.
func Concerns(pod *corev1.Pod) bool {
	policy := pod.Spec.RestartPolicy
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending ||
		policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		return false
	}
	if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return false
	}
	all := containersOf(pod)
	mains, sidecars := of(all, main), of(all, killed, ignored, replaced)
	return len(mains) > 0 && !ended(sidecars) && !slices.ContainsFunc(mains, func(c container) bool {
		return !c.finished(policy)
	})
}

// Next returns the next step to stop the sidecars of a pod.
func Next(in Input) Action {
	d := &decider{Input: in}
	if !Concerns(in.Pod) {
		return d.action
	}
	d.all = containersOf(in.Pod)
	switch {
	case in.Node == nil:
		d.note(note.Waiting, "NodeUnknown", in.Pod.Name, "node "+in.Pod.Spec.NodeName+" is not there")
		d.action.RequeueAfter = noNodePause
	case in.Node.Labels[kruise.NodeTypeKey] == kruise.NodeTypeVirtualKubelet:
		d.swap()
	default:
		d.stop()
	}
	return d.action
}

type decider struct {
	Input
	all    []container
	action Action
}

// patch adds a write of one field of the pod.
func (d *decider) patch(subresource, field string, value any) {
	d.action.Writes = append(d.action.Writes, &write.Write{
		Verb: write.Patch, Object: d.Pod, Subresource: subresource, Type: types.StrategicMergePatchType,
		Body: write.Fields{
			"metadata": map[string]any{"uid": d.Pod.UID, "resourceVersion": d.Pod.ResourceVersion}, field: value,
		},
	})
}

func (d *decider) note(level note.Level, code, object, text string) {
	d.action.Notes = append(d.action.Notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

// swap gives sidecars the images that end them.
func (d *decider) swap() {
	var changed []string
	var containers []map[string]string
	for _, c := range of(d.all, killed, ignored, replaced) {
		switch {
		case c.terminated() != nil:
		case c.image == "":
			d.note(note.Blocked, "SidecarNoImage", c.spec.Name,
				"no daemon can stop it on a virtual node, and there is no image to end it")
		case c.spec.Image == c.image:
			d.note(note.Waiting, "SidecarImageSet", c.spec.Name, "waits for it to end by its image "+c.image)
		default:
			containers = append(containers, map[string]string{"name": c.spec.Name, "image": c.image})
			changed = append(changed, c.spec.Name)
		}
	}
	if len(changed) > 0 {
		d.patch(write.Main, "spec", map[string]any{"containers": containers})
		d.action.Event = "The main containers have finished: sidecars " + strings.Join(changed, ", ") +
			" get the image that ends them"
	}
}

// stop requests that the daemon of the node stops sidecars: first those whose exit code counts, then the others.
func (d *decider) stop() {
	first, last := of(d.all, killed), of(d.all, ignored)
	if !ended(first) {
		d.request(first)
		return
	}
	if ended(last) {
		return
	}
	d.settle()
	d.request(last)
}

// settle gives the pod the phase that follows from its main containers.
func (d *decider) settle() {
	if p := d.Pod.Status.Phase; p == corev1.PodSucceeded || p == corev1.PodFailed {
		return
	}
	phase := corev1.PodSucceeded
	for _, c := range of(d.all, main) {
		if c.terminated().ExitCode != 0 {
			phase = corev1.PodFailed
		}
	}
	d.patch(write.Status, "status", map[string]any{"phase": phase, "conditions": []corev1.PodCondition{{
		Type: kruise.SidecarTerminated, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(d.Now),
		Message: kruise.SidecarTerminatedMessage,
	}}})
}
