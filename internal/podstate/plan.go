package podstate

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/ordinals"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// MostBytes is how large the records of one PersistentPodState may become: etcd rejects an object of 1.5 MiB.
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
	// NoteTooLarge is a pod that is not recorded, because the records are too large already.
	NoteTooLarge = "TooManyRecords"
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
	// Node returns a node; nil for one that does not exist.
	Node func(name string) *corev1.Node
	// Nodes returns all nodes. Plan calls Nodes at most once, and only where the node of a record is gone.
	Nodes func() []*corev1.Node
	Now   time.Time
}

// Pass is what is to be done.
type Pass struct {
	// Status to write where it differs from the stored one.
	Status v1beta1.PersistentPodStateStatus
	// Stuck are pods to delete: they wait for a node with labels that their record no longer requires.
	Stuck []*corev1.Pod
	// Notes are sorted by object.
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
	pods := byName(in.Pods)
	p.record(pods)
	p.retain(pods)
	p.findMissing()
	p.findStuck(pods)
	if len(p.next) > 0 {
		p.pass.Status.PodStates = p.next
	}
	p.pass.Status.Conditions = p.conditions()
	slices.SortStableFunc(p.pass.Notes, func(a, b note.Note) int { return compareNotes(a, b) })
	return p.pass
}

// planner makes one pass.
type planner struct {
	Input

	pass Pass
	next map[string]record
	// found are the labels that nodes have.
	found *found
	// missing and released are the names of pods.
	missing, released []string
}

func (p *planner) note(level note.Level, code, object, text string) {
	p.pass.Notes = append(p.pass.Notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

// record records the pods that are ready.
func (p *planner) record(pods []*corev1.Pod) {
	labels, annotations := labelKeys(p.State), annotationKeys(p.State)
	size := 0
	for name, r := range p.next {
		size += sizeOf(name, r)
	}
	for _, pod := range pods {
		if !Ready(pod) {
			continue
		}
		was, is := p.next[pod.Name]
		if is && was.NodeName == pod.Spec.NodeName && hasKeys(was.NodeTopologyLabels, labels) &&
			hasKeys(was.Annotations, annotations) && p.available(was.NodeName, p.requires(was), was.NodeTopologyLabels) {
			continue
		}
		node := p.Node(pod.Spec.NodeName)
		if node == nil {
			continue
		}
		now := record{
			NodeName:           node.Name,
			NodeTopologyLabels: those(node.Labels, labels),
			Annotations:        those(pod.Annotations, annotations),
		}
		if is && same(was, now) {
			continue
		}
		growth := sizeOf(pod.Name, now)
		if is {
			growth -= sizeOf(pod.Name, was)
		}
		if growth > 0 && size+growth > MostBytes {
			p.note(note.Blocked, NoteTooLarge, pod.Name,
				"the records of other pods take all of the room; name fewer keys, or split the workload")
			continue
		}
		size += growth
		p.next[pod.Name] = now
	}
}

// same reports whether two records are of the same place. An empty map is as good as none.
func same(a, b record) bool {
	return a.NodeName == b.NodeName && a.ReleasedAt == nil && apiequality.Semantic.DeepEqual(a.NodeTopologyLabels,
		b.NodeTopologyLabels) && apiequality.Semantic.DeepEqual(a.Annotations, b.Annotations)
}

// hasKeys reports whether a map has exactly the keys.
func hasKeys(m map[string]string, keys []string) bool {
	if len(m) != len(keys) {
		return false
	}
	for _, k := range keys {
		if _, is := m[k]; !is {
			return false
		}
	}
	return true
}

// those returns the values of keys; nil for none.
func those(of map[string]string, keys []string) map[string]string {
	var some map[string]string
	for _, k := range keys {
		if v, is := of[k]; is {
			if some == nil {
				some = make(map[string]string, len(keys))
			}
			some[k] = v
		}
	}
	return some
}

// sizeOf is that of the JSON which an API server stores.
func sizeOf(name string, r record) int {
	n := len(name) + len(r.NodeName) + 128
	for _, m := range []map[string]string{r.NodeTopologyLabels, r.Annotations} {
		for k, v := range m {
			n += write.EncodedLen(k) + write.EncodedLen(v) + 4
		}
	}
	return n
}

// retain drops the records of pods that the workload has no place for, once the pods are gone.
func (p *planner) retain(pods []*corev1.Pod) {
	if p.State.Spec.PersistentPodStateRetentionPolicy == v1beta1.PersistentPodStateRetentionPolicyWhenDeleted {
		return
	}
	if p.Workload.Unknown {
		p.note(note.Blocked, NoteUnknownReplicas, "",
			"the workload has no spec.replicas that can be read, so that no record is dropped")
		return
	}
	exist := make(map[string]bool, len(pods))
	for _, pod := range pods {
		exist[pod.Name] = exist[pod.Name] || active(pod)
	}
	for name := range p.next {
		_, ordinal, is := ordinals.Split(name)
		switch {
		case !is:
			p.note(note.Info, NoteNoOrdinal, name,
				"the name ends in no ordinal, so that the record stays until the workload is deleted")
		case !p.Workload.Ordinals.Contains(ordinal) && !exist[name]:
			delete(p.next, name)
		}
	}
}
