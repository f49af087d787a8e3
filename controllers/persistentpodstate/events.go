package persistentpodstate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/podstate"
	"github.com/kruisekit/kruisekit/internal/podstates"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// The reasons of events, beside the codes of package podstate.
const (
	// reasonOccupied is a PersistentPodState in place of the one that a workload asks for.
	reasonOccupied = "NotGenerated"
	// reasonRejected is a PersistentPodState that the API server rejects, in an event about the workload.
	reasonRejected = "FailedGenerate"
	// reasonRecreates is a pod that waited for labels that no node has.
	reasonRecreates = "DeletedPod"
	// reasonUnsupported is a workload that cannot be read.
	reasonUnsupported = "UnsupportedTarget"
)

// about is one reason of one PersistentPodState.
type about struct {
	state  types.NamespacedName
	reason string
}

// lasting are the reasons whose event is emitted once until the reason is gone.
func lasting() []string {
	return []string{
		reasonOccupied, reasonRejected, reasonUnsupported, podstate.NoteMissing, podstate.NoteTooLarge,
		podstate.NoteUnknownReplicas, podstate.NoteBadRelease,
	}
}

// emitOccupied emits an event where a PersistentPodState stands in the way of the one that a workload asks for.
func (r *Reconciler) emitOccupied(s *snapshot) {
	text := ""
	if s.generation.Action == podstate.Occupied {
		text = "The workload asks for a PersistentPodState of this name, which the workload does not control; " +
			"this one stays as it is"
	}
	if s.state != nil && r.emitted.Changed(about{s.name, reasonOccupied}, text) {
		r.api.Event(s.state, corev1.EventTypeWarning, reasonOccupied, text)
	}
}

// emitRejected emits an event about a workload whose PersistentPodState the API server rejects.
func (r *Reconciler) emitRejected(p *plan) {
	if p.generating.updated {
		r.emitted.Forget(about{p.name, reasonRejected})
	}
	if p.generating.invalid == nil {
		return
	}
	ref := metav1.GetControllerOfNoCopy(p.generation.State)
	workload := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: ref.APIVersion, Kind: ref.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name.Namespace, Name: ref.Name, UID: ref.UID},
	}
	text := "The API server rejects the PersistentPodState that the annotations ask for: " +
		failure.BriefText(p.generating.invalid.Error())
	if r.emitted.Changed(about{p.name, reasonRejected}, text) {
		r.api.Event(workload, corev1.EventTypeWarning, reasonRejected, text)
	}
}

// emitDeleted emits the event of a pod that was deleted.
func (r *Reconciler) emitDeleted(s *snapshot, w *write.Write, err error) {
	pod, is := w.Object.(*corev1.Pod)
	if !is || w.Verb != write.Delete || err != nil && !write.IsOutdated(err) {
		return
	}
	const text = "Deleted pod %s, which waited for labels that no node has; the workload creates the pod again"
	r.api.Normalf(s.state, reasonRecreates, text, pod.Name)
}

// complain emits an event about a workload that cannot be read.
func (r *Reconciler) complain(s *snapshot) {
	if r.emitted.Changed(about{s.name, reasonUnsupported}, s.unsupported) {
		r.api.Warningf(s.state, reasonUnsupported, "Kept all records as they are: %s", s.unsupported)
	}
}

// emit emits the events of a pass, after its writes. Of several notes with the same code, it emits the first.
func (r *Reconciler) emit(s *snapshot, pass podstate.Pass) {
	texts := map[string]string{}
	for _, n := range pass.Notes {
		text := n.Text
		if n.Object != "" {
			text = "Pod " + n.Object + ": " + text
		}
		switch {
		case n.Code == podstate.NoteReleased:
			r.api.Event(s.state, corev1.EventTypeNormal, n.Code, text)
		case n.Level == note.Blocked && texts[n.Code] == "":
			texts[n.Code] = text
		}
	}
	for _, reason := range lasting() {
		if reason != reasonOccupied && reason != reasonRejected && r.emitted.Changed(about{s.name, reason}, texts[reason]) {
			r.api.Event(s.state, corev1.EventTypeWarning, reason, texts[reason])
		}
	}
}

// key returns the name of a PersistentPodState of the index.
func key(s *podstate.State) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// names of PersistentPodStates in the index.
func names(index *podstates.Index, namespace string, of podstate.Target) []types.NamespacedName {
	var all []types.NamespacedName
	for _, s := range index.Of(namespace, of) {
		all = append(all, key(s))
	}
	return all
}
