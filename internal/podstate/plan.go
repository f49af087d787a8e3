package podstate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/note"
)

// MostBytes is how large the status of one PersistentPodState may become: etcd rejects an object of 1.5 MiB.
const MostBytes = 1 << 20

// The codes of notes.
const (
	// NoteMissing is a record whose required labels no node has.
	NoteMissing = "NodesMissing"
	// NoteReleased is a record that no longer requires labels that no node has.
	NoteReleased = "TopologyReleased"
	// NoteNoOrdinal is a record of a pod without an ordinal, which only the deletion of the workload drops.
	NoteNoOrdinal = "NoOrdinal"
	// NoteUnknownReplicas is a workload whose replicas cannot be read.
	NoteUnknownReplicas = "ReplicasUnknown"
	// NoteBadRelease is an annotation kruisekit.dev/release-missing-topology-after that is no duration.
	NoteBadRelease = "InvalidAnnotation"
)

// Workload is the workload of a PersistentPodState.
type Workload struct {
	// Gone reports that the workload does not exist, or terminates.
	Gone bool
	// Unknown reports that the replicas cannot be read.
	Unknown bool
	// Ordinals are those that the workload wants.
	Ordinals ordinals.Window
}

// Input is what a pass looks at. Nothing in the input is changed.
type Input struct {
	State    *State
	Workload Workload
	// Pods that the workload controls. Pods that ended or terminate are ignored.
	Pods []*corev1.Pod
	// Nodes has the nodes of the pods and of the records, by name, and all other nodes where NeedsAllNodes says so.
	Nodes map[string]*corev1.Node
	Now   time.Time
}

// Pass is what is to be done.
type Pass struct {
	// Status to write where it differs from the stored one.
	Status v1beta1.PersistentPodStateStatus
	// Stuck are pods to delete after the write: they wait for a node with labels that their record no longer requires.
	Stuck []*corev1.Pod
	Notes []note.Note
	// RequeueAfter is when to plan again although nothing changes; zero for never.
	RequeueAfter time.Duration
}

// Plan decides about the records of a PersistentPodState.
func Plan(in Input) Pass {
	p := planner{Input: in, next: map[string]record{}}
	p.pass.Status.ObservedGeneration = in.State.Generation
	if in.Workload.Gone {
		return p.pass
	}
	maps.Copy(p.next, in.State.Status.PodStates)
	p.Pods = slices.SortedFunc(slices.Values(in.Pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	p.record()
	p.retain()
	p.findMissing()
	p.findStuck()
	if len(p.next) > 0 {
		p.pass.Status.PodStates = p.next
	}
	p.pass.Status.Conditions = p.conditions()
	return p.pass
}

// planner makes one pass.
type planner struct {
	Input

	pass Pass
	next map[string]record
	// missing are the names of pods whose required labels no node has, and released reports that such a pod was released.
	missing  []string
	released bool
}

func (p *planner) note(level note.Level, code, object, text string) {
	p.pass.Notes = append(p.pass.Notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

// names returns the names of the recorded pods, sorted.
func (p *planner) names() []string { return slices.Sorted(maps.Keys(p.next)) }

// record records the pods that are ready.
func (p *planner) record() {
	labels, annotations := labelKeys(p.State), annotationKeys(p.State)
	for _, pod := range p.Pods {
		node := p.Nodes[pod.Spec.NodeName]
		if node == nil || !Ready(pod) {
			continue
		}
		r, ok := p.next[pod.Name]
		if ok && r.NodeName == node.Name && hasKeys(r.NodeTopologyLabels, labels) &&
			hasKeys(r.Annotations, annotations) && p.isAvailable(r) {
			continue
		}
		p.next[pod.Name] = record{
			NodeName:           node.Name,
			NodeTopologyLabels: values(node.Labels, labels),
			Annotations:        values(pod.Annotations, annotations),
		}
	}
}

// retain drops the records of pods that the workload has no place for, once the pods are gone.
func (p *planner) retain() {
	if p.State.Spec.PersistentPodStateRetentionPolicy == v1beta1.PersistentPodStateRetentionPolicyWhenDeleted {
		return
	}
	if p.Workload.Unknown {
		p.note(note.Blocked, NoteUnknownReplicas, "",
			"the workload has no spec.replicas that can be read, so that no record is dropped")
		return
	}
	exist := make(map[string]bool, len(p.Pods))
	for _, pod := range p.Pods {
		exist[pod.Name] = active(pod)
	}
	for _, name := range p.names() {
		_, ordinal, ok := ordinals.Split(name)
		switch {
		case !ok:
			p.note(note.Info, NoteNoOrdinal, name,
				"the name ends in no ordinal, so that the record stays until the workload is deleted")
		case !p.Workload.Ordinals.Contains(ordinal) && !exist[name]:
			delete(p.next, name)
		}
	}
}
