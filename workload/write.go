package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/write"
)

// Action is what a write does for its workload, for events and logs.
type Action string

const (
	// ActionStore makes a revision the newest, or asks who has its name: see Input.Store.
	ActionStore Action = "Store"
	// ActionTrim deletes an old revision.
	ActionTrim Action = "Trim"
	// ActionObserve asks for the pod that has the name of a new pod.
	ActionObserve Action = "Observe"
	// ActionFirst is a write of the caller's, from Input.First.
	ActionFirst Action = "First"
	// ActionCreate creates a pod, or an object that the pod needs.
	ActionCreate Action = "Create"
	// ActionPrepare is a write of the caller's, from Input.Before.
	ActionPrepare Action = "Prepare"
	// ActionAhead is a write of the caller's, from Input.Ahead.
	ActionAhead Action = "Ahead"
	// ActionDelete deletes a pod.
	ActionDelete Action = "Delete"
	// ActionMove changes the lifecycle state of a pod, or what keeps the pod not ready for a hook.
	ActionMove Action = "Move"
	// ActionContinue is a step of an update that has begun, or opens the readiness gate.
	ActionContinue Action = "Continue"
	// ActionUnready takes a pod out of traffic before its update.
	ActionUnready Action = "Unready"
	// ActionUpdate changes a pod to another revision.
	ActionUpdate Action = "Update"
	// ActionMark marks a pod to be deleted and created again.
	ActionMark Action = "Mark"
	// ActionAsk writes nothing: it asks whether the pods in Asked may be disrupted. Answer takes nil for all of them,
	// a *RefusedError for the first ones or none, and another error where the question could not be decided. See
	// Input.Ask.
	ActionAsk Action = "Ask"
	// ActionLabel adds missing labels of the pod's revision.
	ActionLabel Action = "Label"
)

// Write is one write of a pass. Send it, and give the answer to Pass.Answer.
type Write struct {
	write.Write

	// Action is what the write does.
	Action Action
	// Instance is the name of the instance; empty for writes of the caller and for new instances.
	Instance string
	// Pod is the pod that the write is about: to create, as it is before a change, or whose object is deleted. Nil for
	// writes of the caller.
	Pod *corev1.Pod
	// Revision that an update goes to, or that a new pod gets.
	Revision string
	// Asked are the pods of a question, in the order of their updates; nil for a write.
	Asked []*corev1.Pod

	of *instance
	// asked are the instances of a question.
	asked []*instance
	// refused is the answer to the creation that a question is about.
	refused error
	// member of the instance that is written; rest are the objects to create after this one.
	member *member
	rest   []write.Object
	// harmless means that the pod stays available.
	harmless bool
	repeat   repeatKey
}

// String returns what the write does to which object, for errors.
func (w *Write) String() string {
	verb := "patch"
	switch w.Action {
	case ActionAsk:
		return fmt.Sprintf("ask for the update of %d pods, pod %s first", len(w.Asked), w.Asked[0].Name)
	case ActionCreate, ActionObserve:
		verb = "create"
	case ActionDelete, ActionTrim:
		verb = "delete"
	case ActionUpdate, ActionUnready:
		verb = "update in place"
	case ActionMark:
		verb = "mark for deletion"
	}
	return fmt.Sprintf("%s %s %s", verb, w.Kind(), w.Object.GetName())
}

// Failure is what went wrong with one object. It stopped nothing else.
type Failure struct {
	// Write that was rejected; nil where the plan itself failed for the instance.
	Write *Write
	// Pod or other object, by name.
	Object string
	// Err is why.
	Err error
	// Scaling means that the failure is about the number of pods, not about their updates.
	Scaling bool
	// Ahead means that the failure is one of Input.Ahead.
	Ahead bool
	// NotInPlace means that the strategy allows updates in place only, and the change is not possible in place.
	NotInPlace bool
}
