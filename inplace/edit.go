package inplace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// edit is one patch of the pod itself in the making.
type edit struct {
	look

	labels, annotations map[string]*string
	finalizers          []string
	containers          []write.Op
	tests               []write.Op
	// update that this is the first write of; nil for later ones.
	update *Update
	// relabelTo is what the revision label becomes; nil to leave the label alone. settled means that the node has nothing
	// to do after the write.
	relabelTo *string
	settled   bool
}

func (l look) edit() *edit {
	e := &edit{
		look: l, finalizers: l.pod.Finalizers, labels: map[string]*string{},
		// Whatever waited is either in this write or not wanted any more.
		annotations: map[string]*string{l.policy.Keys.InPlaceGraceKey(): nil, kruise.InPlaceUpdateGraceKeyOld: nil},
	}
	l.policy.Keys.RemoveOlder(e.annotations, (*kruise.Keys).InPlaceGraceKey)
	return e
}

// apply writes one batch of a change, and what is left of it into the state.
func (e *edit) apply(s *kruise.InPlaceUpdateState, c *Change) ([]write.Op, error) {
	c = c.due(e.pod)
	batch, rest := split(e.pod, c, e.policy.Keys)
	maps.Copy(e.labels, c.Metadata.Labels)
	maps.Copy(e.annotations, c.Metadata.Annotations)
	e.finalizers = union(minus(e.finalizers, c.Metadata.RemoveFinalizers), c.Metadata.AddFinalizers)
	for _, name := range batch {
		for key, value := range c.RefMetadata[name].Labels {
			e.labels[key] = &value
		}
		for key, value := range c.RefMetadata[name].Annotations {
			e.annotations[key] = &value
		}
		if image, ok := c.Images[name]; ok {
			path := write.Pointer("spec", "containers", positionOf(e.pod, name), "image")
			e.containers = append(e.containers, write.Replace(path, image))
			e.record(s, name)
		}
	}
	s.NextContainerImages, s.NextContainerResources, s.NextContainerRefMetadata = rest.Images, rest.Resources,
		rest.RefMetadata
	s.PreCheckBeforeNext = nil
	if hasMore(s) {
		s.PreCheckBeforeNext = &kruise.InPlaceUpdatePreCheckBeforeNext{ContainersRequiredReady: batch}
	}
	if err := e.explain(c, batch); err != nil {
		return nil, err
	}
	if batch == nil {
		batch = []string{}
	}
	s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, kruise.InPlaceUpdateContainerBatch{
		Timestamp: metav1.NewTime(e.now), Containers: batch,
	})
	return e.store(s)
}

// record stores what a container runs before its image changes.
func (e *edit) record(s *kruise.InPlaceUpdateState, name string) {
	status := statusOf(e.pod, name)
	if status == nil {
		return
	}
	last := kruise.InPlaceUpdateContainerStatus{
		ImageID:      status.ImageID,
		ContainerID:  status.ContainerID,
		RestartCount: status.RestartCount,
		Image:        find(e.pod.Spec.Containers, name).Image,
	}
	// Overtaken before the node did anything: the container still runs what it ran before that.
	if before, ok := s.LastContainerStatuses[name]; ok && before.ContainerID == last.ContainerID {
		last.Image = before.Image
	}
	if s.LastContainerStatuses == nil {
		s.LastContainerStatuses = map[string]kruise.InPlaceUpdateContainerStatus{}
	}
	s.LastContainerStatuses[name] = last
	e.tests = append(e.tests, statusTests(e.pod, name, status)...)
}

// statusTests make sure that what is recorded is what there is: a record older than that would look like a completed
// update.
func statusTests(pod *corev1.Pod, name string, status *corev1.ContainerStatus) []write.Op {
	at := strconv.Itoa(slices.IndexFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.Name == name
	}))
	var id any // absent where it is empty
	if status.ContainerID != "" {
		id = status.ContainerID
	}
	return []write.Op{
		write.Test(write.Pointer("status", "containerStatuses", at, "name"), name),
		write.Test(write.Pointer("status", "containerStatuses", at, "imageID"), status.ImageID),
		write.Test(write.Pointer("status", "containerStatuses", at, "containerID"), id),
	}
}

// store writes everything, with the state.
func (e *edit) store(s *kruise.InPlaceUpdateState) ([]write.Op, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.policy.Keys.InPlaceStateKey(), err)
	}
	e.policy.Keys.RemoveOlder(e.annotations, (*kruise.Keys).InPlaceStateKey)
	e.annotations[kruise.InPlaceUpdateStateKeyOld] = nil
	e.annotations[e.policy.Keys.InPlaceStateKey()] = ptr.To(string(data))
	return e.encode(), nil
}

// encode writes everything.
func (e *edit) encode() []write.Op {
	// The revision of a pod is not a part of its template.
	delete(e.labels, e.policy.Keys.RevisionKey())
	if e.update != nil {
		for key, value := range e.update.Labels {
			e.labels[key] = &value
		}
		e.policy.Keys.RemoveOlder(e.annotations, (*kruise.Keys).PendingRevisionKey)
		pending := e.policy.Keys.PendingRevisionKey()
		if e.annotations[pending] = &e.update.Revision; e.relabelNow() {
			e.relabelTo, e.annotations[pending] = &e.update.Revision, nil
		}
		for key, value := range e.update.Annotations {
			e.annotations[key] = &value
		}
	}
	if e.relabelTo != nil {
		e.policy.Keys.RemoveOlder(e.labels, (*kruise.Keys).RevisionKey)
		e.labels[e.policy.Keys.RevisionKey()] = e.relabelTo
	}
	return slices.Concat(e.unchanged(), e.tests, write.SetLabels(e.pod, e.labels),
		write.SetAnnotations(e.pod, e.annotations), write.SetFinalizers(e.pod, e.finalizers), e.containers)
}

// body makes the operations of a JSON patch. Such a patch tests the values that it follows from: it overwrites no
// change of another writer, and does not fail for other changes of the pod.
type body func() ([]write.Op, error)

// Data returns the patch.
func (b body) Data() ([]byte, error) {
	ops, err := b()
	if err != nil {
		return nil, err
	}
	return write.Encode(ops)
}

// write returns a patch of the pod.
func (l look) write(subresource string, b body) *write.Write {
	return &write.Write{Verb: write.Patch, Object: l.pod, Subresource: subresource, Type: types.JSONPatchType, Body: b}
}

// unchanged starts a patch of exactly this pod, as long as no other writer has advanced its update: begun
// another one, written the next batch, put it back into traffic.
func (l look) unchanged() []write.Op {
	ops := append(write.TestUID(l.pod),
		write.TestLabel(l.pod, l.policy.Keys.RevisionKey()),
		write.TestAnnotation(l.pod, l.policy.Keys.InPlaceStateKey()),
		write.TestAnnotation(l.pod, l.policy.Keys.InPlaceGraceKey()))
	gate := l.gate()
	for i := range l.pod.Status.Conditions {
		if c := &l.pod.Status.Conditions[i]; c.Type == gate && c.Status == corev1.ConditionFalse {
			at := write.Pointer("status", "conditions", strconv.Itoa(i))
			ops = append(ops, write.Test(at+"/type", c.Type), write.Test(at+"/status", c.Status))
		}
	}
	return ops
}

// inTraffic reports whether the pod is not marked yet, or marked and still ready: it may have become ready after it was
// read for the mark, which then did not set Ready to False.
func (l look) inTraffic() bool {
	return statusOfCondition(l.pod, l.gate()) != corev1.ConditionFalse ||
		lifecycle.Ready(l.pod, l.now) != nil
}

// notReady takes a pod out of traffic.
func (l look) notReady() *write.Write {
	return l.write(write.Status, func() ([]write.Op, error) {
		mark := corev1.PodCondition{
			Type: l.gate(), Status: corev1.ConditionFalse,
			Reason: kruise.InPlaceUpdateReadyReasonStart, LastTransitionTime: metav1.NewTime(l.now),
		}
		changes := []corev1.PodCondition{mark}
		if ready := lifecycle.Ready(l.pod, l.now, mark); ready != nil {
			changes = append(changes, *ready)
		}
		return append(l.unchanged(), lifecycle.SetConditions(l.pod, changes...)...), nil
	})
}

// takesOut reports whether a change takes a pod out of traffic. Without the gate nothing could.
func (p Policy) takesOut(pod *corev1.Pod, c *Change) bool {
	if c.Empty() || !lifecycle.HasGate(pod, p.Keys.InPlaceReadyOf(pod)) {
		return false
	}
	if p.Unready == UnreadyAlways && (len(c.Resources) == 0 || len(c.Images) > 0 || len(c.Env) > 0) {
		return true
	}
	return c.restartsAny(pod)
}

// restartsAny reports whether a change restarts a container of a pod.
func (c *Change) restartsAny(pod *corev1.Pod) bool {
	return len(c.Env) > 0 || len(c.Restarts(pod)) > 0 // a daemon restarts no container of a pod in traffic
}

func statusOfCondition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	if c := lifecycle.ConditionOf(pod, t); c != nil {
		return c.Status
	}
	return ""
}

// EnsureReadinessGate adds the readiness gate InPlaceUpdateReady, or the one that the keys name, to the spec of a pod
// that is about to be created, and reports whether it was missing. Without the gate no write takes the pod out of
// traffic while its containers restart. The gates of a created pod cannot change. Call Next for each pod that has the
// gate: it opens the gate.
func EnsureReadinessGate(spec *corev1.PodSpec, keys *kruise.Keys) bool {
	gate := corev1.PodReadinessGate{ConditionType: keys.InPlaceReadyGate()}
	if slices.Contains(spec.ReadinessGates, gate) {
		return false
	}
	spec.ReadinessGates = append(slices.Clip(spec.ReadinessGates), gate)
	return true
}

// Relabel is when the revision label of a pod changes during an update.
type Relabel string

const (
	// RelabelFirst changes the label together with the change, as OpenKruise does. It is the default.
	RelabelFirst Relabel = ""
	// RelabelLast changes the label when the containers run the change and the pod is ready again. It is for controllers
	// that count a pod with the new label as updated, as those of Kubernetes do. Until then the annotation
	// kruise.Keys.PendingRevision holds the revision.
	RelabelLast Relabel = "Last"
	// RelabelDone ends such updates as soon as the containers run the change, ready or not.
	RelabelDone Relabel = "Done"
)

// RevisionOf returns the revision that the spec of a pod has, as the revision label holds it: the one that an update
// with RelabelLast is moving the pod to, else the value of the label.
func RevisionOf(pod *corev1.Pod, p Policy) string {
	return cmp.Or(p.pending(pod), p.Keys.RevisionOf(pod))
}

// pending returns the revision that waits in a pod for its label. With RelabelFirst none does: the annotation is then
// one of the template.
func (p Policy) pending(pod *corev1.Pod) string {
	if p.Relabel == RelabelFirst {
		return ""
	}
	_, value, _ := p.Keys.Lookup(pod.Annotations, (*kruise.Keys).PendingRevisionKey)
	return value
}

// Settled reports whether no update of a pod is under way, and the revision label of the pod is that of its spec.
func Settled(pod *corev1.Pod, p Policy) bool {
	done, _ := Completed(pod, p)
	return done && p.pending(pod) == ""
}

// relabel writes the revision label of a pod whose update is complete, and with RelabelLast once the pod is ready.
func (l look) relabel() Action {
	pending := l.policy.pending(l.pod)
	if pending == "" {
		return Action{Verdict: Complete}
	}
	c := lifecycle.ConditionOf(l.pod, corev1.PodReady)
	if l.policy.Relabel == RelabelLast && (c == nil || c.Status != corev1.ConditionTrue) {
		return wait(recheck, newNote(l.pod, NoteRelabel, "the revision label changes when the pod is ready"))
	}
	return l.relabelTo(pending)
}

// relabelTo is a function of its own so that Next allocates nothing for a pod that needs nothing.
func (l look) relabelTo(pending string) Action {
	return l.patch(StepRelabel, func() ([]write.Op, error) {
		e := l.edit()
		e.policy.Keys.RemoveOlder(e.annotations, (*kruise.Keys).PendingRevisionKey)
		e.annotations[e.policy.Keys.PendingRevisionKey()], e.relabelTo = nil, &pending
		return e.encode(), nil
	})
}

// relabelNow reports whether the first write of an update changes the revision label: the policy says so, the node has
// nothing to do, or a pod that was about to leave the revision goes back to it.
func (e *edit) relabelNow() bool {
	return e.policy.Relabel == RelabelFirst || e.settled || e.policy.Keys.RevisionOf(e.pod) == e.update.Revision
}
