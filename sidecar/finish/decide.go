package finish

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/note"
)

// EventReason is that of the event of a plan.
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

// Plan is what the controller does about a pod: all of it, in the order of the fields. When one fails, the rest waits for the
// next plan.
type Plan struct {
	// Images are new ones of containers, by name; ImagesPatch is how to write them.
	Images map[string]string
	// Status is what to write into the status of the pod; nil for nothing. StatusPatch is how.
	Status *Status
	// Delete is the UID of the request that is replaced; empty for none.
	Delete types.UID
	// Create this request; nil for none. One that is there is as good.
	Create *appsv1beta1.ContainerRecreateRequest
	// Event is the text of the event of Images or Create, of which a plan has one at most. It is told when the write has
	// changed something.
	Event string
	// RequeueAfter is when the plan may change although nothing else does; 0 for never.
	RequeueAfter time.Duration
	// Notes say why.
	Notes []note.Note
}

// Status is that of a pod whose main containers alone decide how it ended.
type Status struct {
	// Phase is Succeeded or Failed.
	Phase corev1.PodPhase
	// Condition is added.
	Condition corev1.PodCondition
}

// Empty says that there is nothing to write.
func (p Plan) Empty() bool {
	return len(p.Images) == 0 && p.Status == nil && p.Delete == "" && p.Create == nil
}

// Concerns says whether the main containers of a pod have finished, and sidecars of it have not. All else that Decide looks
// at does not matter before.
func Concerns(pod *corev1.Pod) bool {
	policy := pod.Spec.RestartPolicy
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending || policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		return false
	}
	if len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
		return false
	}
	all := containersOf(pod)
	mains, sidecars := of(all, main), of(all, killed, ignored, replaced)
	return len(mains) > 0 && !ended(sidecars) && !slices.ContainsFunc(mains, func(c container) bool { return !c.finished(policy) })
}

// Decide says what to do about the sidecars of a pod.
func Decide(in Input) Plan {
	d := &decider{Input: in}
	if !Concerns(in.Pod) {
		return d.plan
	}
	d.all = containersOf(in.Pod)
	switch {
	case in.Node == nil:
		d.note(NoteNoNode, in.Pod.Name, "node "+in.Pod.Spec.NodeName+" is not there")
		d.plan.RequeueAfter = noNodePause
	case in.Node.Labels[pub.NodeTypeKey] == pub.NodeTypeVirtualKubelet:
		d.swap()
	default:
		d.stop()
	}
	return d.plan
}

type decider struct {
	Input
	all  []container
	plan Plan
}

func (d *decider) note(code, object, text string) {
	d.plan.Notes = append(d.plan.Notes, newNote(code, object, text))
}

// swap gives sidecars the images that end them.
func (d *decider) swap() {
	var changed []string
	for _, c := range of(d.all, killed, ignored, replaced) {
		switch {
		case c.terminated() != nil:
		case c.image == "":
			d.note(NoteNoImage, c.spec.Name, "no daemon can stop it on a virtual node, and there is no image to end it")
		case c.spec.Image == c.image:
			d.note(NoteImage, c.spec.Name, "waits for it to end by its image "+c.image)
		default:
			if d.plan.Images == nil {
				d.plan.Images = map[string]string{}
			}
			d.plan.Images[c.spec.Name] = c.image
			changed = append(changed, c.spec.Name)
		}
	}
	if len(changed) > 0 {
		d.plan.Event = "The main containers have finished: sidecars " + strings.Join(changed, ", ") + " get the image that ends them"
	}
}

// stop has sidecars stopped by the daemon of the node: first those whose end counts, then the others.
func (d *decider) stop() {
	for _, c := range of(d.all, replaced) {
		if c.terminated() == nil {
			d.note(NoteImageOnly, c.spec.Name, "is not stopped here: "+pub.TerminateSidecarEnvName+" is not true")
		}
	}
	first, last := of(d.all, killed), of(d.all, ignored)
	if !ended(first) {
		for _, c := range last {
			if c.terminated() != nil {
				continue
			}
			d.note(NoteNotYet, c.spec.Name, "is stopped after "+strings.Join(names(first), ", "))
		}
		d.request(first)
		return
	}
	if ended(last) {
		return
	}
	d.settle()
	d.request(last)
}

// settle gives the pod the phase that its main containers make of it.
func (d *decider) settle() {
	if p := d.Pod.Status.Phase; p == corev1.PodSucceeded || p == corev1.PodFailed {
		return
	}
	s := &Status{Phase: corev1.PodSucceeded, Condition: corev1.PodCondition{
		Type: pub.SidecarTerminated, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(d.Now), Message: pub.SidecarTerminatedMessage,
	}}
	for _, c := range of(d.all, main) {
		if c.terminated().ExitCode != 0 {
			s.Phase = corev1.PodFailed
		}
	}
	d.plan.Status = s
}
