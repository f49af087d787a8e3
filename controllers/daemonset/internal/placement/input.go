package placement

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
	"github.com/kruisekit/kruisekit/workload/eligible"
)

// Input is a workload with a pod per node, as its controller observes it.
type Input struct {
	Now time.Time
	// Nodes are all that exist, Pods all that the workload controls, those that terminate or have finished included.
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	// Rule of the pod template.
	Rule *eligible.Rule
	// MinReadySeconds is how long a pod is ready before it counts as available.
	MinReadySeconds int32
	// IsUpdated reports whether a pod has the update revision.
	IsUpdated func(*corev1.Pod) bool
	// InPlace reports whether an update changes a running pod; nil for none. Other pods are recreated.
	InPlace func(*corev1.Pod) bool
	// Limits are the bounds of the user.
	Limits Limits
	// Updates is whether pods are updated.
	Updates scale.Updates
	// Selector selects the nodes whose pods are updated, by their labels; nil for all.
	Selector labels.Selector
	// PartitionedScaling has nodes get a pod only as far as the partition lets them be at the update revision.
	PartitionedScaling bool
	// Loose counts as the reference does: a pod that is not available takes nothing of MaxUnavailable where it is still to
	// be updated, or where the partition or the selector keeps it.
	Loose bool
	// PreDelete is the hook that holds pods before their deletion; nil for none.
	PreDelete *kruise.LifecycleHook
	// Backoff is the one that the plan before returned.
	Backoff Backoff
}

// Limits are the bounds as the user wrote them. Those that cannot be parsed have their defaults: package validation
// reports them.
type Limits struct {
	// MaxUnavailable and MaxSurge are rounded up. Where both are 0, one pod may be unavailable.
	MaxUnavailable, MaxSurge *intstr.IntOrString
	// Partition is how many nodes are not updated, rounded down.
	Partition *intstr.IntOrString
	// Burst is how many pods are created, and how many deleted, in one pass: 250 by default, and at least 1.
	Burst *intstr.IntOrString
}

// DefaultBurst bounds the creations of a pass, and its deletions, where the user does not.
const DefaultBurst = 250

// Result is what the nodes are to have.
type Result struct {
	// Slots are the names of the instances that are to exist, by the name of their node.
	Slots []string
	// Instances that exist, by name. One without a slot is to be deleted.
	Instances []Instance
	// Partition and MaxUnavailable are those for the slots. Burst bounds the updates of a pass.
	Partition, MaxUnavailable, Burst int32
	// Desired is how many nodes are eligible, Surge how many of them may have a second pod.
	Desired, Surge int32
	// Failed are the pods that have failed and are deleted in this pass, Held those that the hook holds before that.
	Failed, Held []*corev1.Pod
	// Backoff is to be given to the next plan, once the writes of this one are sent.
	Backoff Backoff
	// RequeueAfter is when to look again although nothing changes; 0 for never.
	RequeueAfter time.Duration
	// Notes explain the decision.
	Notes []note.Note
}

// Instance is a pod that a node has.
type Instance struct {
	// Name is that of a slot, or another one where the pod is surplus.
	Name string
	Pod  *corev1.Pod
	// NotNow keeps the pod from being updated, Recreate from being updated in place.
	NotNow, Recreate bool
}

// surgeSuffix ends the name of the slot of a second pod. No node has such a name.
const surgeSuffix = "/new"

// NodeOf returns the node of a slot.
func NodeOf(slot string) string {
	if n := len(slot) - len(surgeSuffix); n > 0 && slot[n:] == surgeSuffix {
		return slot[:n]
	}
	return slot
}

// Codes of notes.
const (
	// NoteNotEligible is a pod that is deleted because its node does not fit any more.
	NoteNotEligible = "NodeNotEligible"
	// NoteNodeGone is a pod that waits for the scheduler to put it on a node that does not exist.
	NoteNodeGone = "NodeGone"
	// NoteDuplicate is a pod next to an older one on its node.
	NoteDuplicate = "DuplicatePod"
	// NoteReplaced is an old pod next to a new one that serves.
	NoteReplaced = "PodReplaced"
	// NoteFailed is a pod that has failed and is deleted, NoteBackoff one that is deleted later.
	NoteFailed  = "PodFailed"
	NoteBackoff = "PodFailedBackoff"
	// NoteBurst are pods that wait because the pass has enough.
	NoteBurst = "BurstLimited"
	// NotePartition are nodes that get no pod because of the partition.
	NotePartition = "PartitionedScaling"
	// NoteSelector are pods that the selector of nodes keeps from being updated.
	NoteSelector = "NodeNotSelected"
	// NoteStays is an old pod on a node that would not get another one.
	NoteStays = "NodeTakesNoPods"
	// NoteSurge are pods that wait for the surge.
	NoteSurge = "SurgeLimited"
)
