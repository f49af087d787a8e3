package inplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// Update is what Next looks at: one pod, and the revision that it is updated to.
type Update struct {
	// Pod as it is.
	Pod *corev1.Pod
	// Change from the revision in the pod's label to the new one; empty where only the revision changes. It is ignored,
	// and may be nil, where the pod has the new revision.
	Change *Change
	// Revision is the new value of the revision label. It is empty, as is all below, to continue an update that has begun.
	Revision string
	// Labels and Annotations are written together with the change: other revision labels, a lifecycle state.
	Labels, Annotations map[string]string
	// GraceSeconds pass between taking the pod out of traffic and changing its containers.
	GraceSeconds int32
	// TakeOut takes the pod out of traffic whatever changes in it, because others change that it serves with.
	TakeOut bool
}

// Verdict is what to do with a pod.
type Verdict string

const (
	// Write means to send the write, and to call Next again with the pod that the API server returned.
	Write Verdict = "Write"
	// Wait means to call Next again when the pod changes, and at the latest after Action.After.
	Wait Verdict = "Wait"
	// Complete means that no update of the pod is under way, and that its readiness gate is open.
	Complete Verdict = "Complete"
	// Ignore means that the pod is not to be written: it is terminating, or it has finished.
	Ignore Verdict = "Ignore"
	// Recreate means that the update cannot complete in this pod.
	Recreate Verdict = "Recreate"
)

// Step is which part of an update a write is.
type Step string

const (
	// StepNotReady takes the pod out of traffic.
	StepNotReady Step = "NotReady"
	// StepGrace stores the change in the pod until the grace period ends, or drops a change that is stored there and is no
	// longer wanted.
	StepGrace Step = "Grace"
	// StepResize changes resources through the subresource of the pod.
	StepResize Step = "Resize"
	// StepChange changes the pod itself: images, labels, annotations.
	StepChange Step = "Change"
	// StepReady puts the pod back into traffic, or opens the readiness gate of a new pod.
	StepReady Step = "Ready"
	// StepRelabel changes the revision label, and no other part of the template.
	StepRelabel Step = "Relabel"
)

// Action is what to do next with a pod, and why.
type Action struct {
	// Verdict is what to do.
	Verdict Verdict
	// Write is what to send, with Write.
	Write *write.Write
	// Step is which part of the update the write is; empty without a write.
	Step Step
	// Restarts are the containers that restart because of the write, sorted. See Change.Restarts for all of the update.
	Restarts []string
	// After is the time after which to call Next again, with Wait.
	After time.Duration
	// Notes explain the plan.
	Notes []note.Note
}

// errNoUpdate is for an Update without its target: taken for a converged pod, it would count as updated.
var errNoUpdate = errors.New("an update needs both a change and a revision")

// Next returns what to do next with a pod. Each write is followed by another call with the pod that the API server
// returned.
//
// With a revision that the pod does not have, the update begins. An update that is still under way is overtaken: what
// it has not done yet, and the new change does not undo, is done with the new one.
//
// Else Next continues the update that the pod's annotations record, also one that another controller began. Call it so
// for every pod, also for one that was never updated: it also opens the readiness gate InPlaceUpdateReady of a new pod
// for the first time, and without that write such a pod never becomes ready.
func Next(u Update, p Policy, now time.Time) (Action, error) {
	l := look{u.Pod, p, now}
	switch {
	case u.Revision == "" && u.Change != nil:
		return Action{}, errNoUpdate
	case u.Revision == "" || RevisionOf(l.pod, p) == u.Revision:
		return l.step()
	case u.Change == nil:
		return Action{}, errNoUpdate
	}
	return l.start(u)
}

// start begins an update. It is a function of its own so that Next allocates nothing for a pod that needs nothing.
func (l look) start(u Update) (Action, error) {
	switch {
	case l.pod.DeletionTimestamp != nil:
		return Action{Verdict: Ignore}, nil
	case finished(l.pod):
		return Action{Verdict: Recreate, Notes: []note.Note{
			newNote(l.pod, NoteFinished, "the pod has finished: nothing starts in it any more"),
		}}, nil
	}
	state, change, err := l.overtake(u.Change)
	if err != nil {
		return Action{}, err
	}
	return l.begin(&u, state, change), nil
}

// begin returns what comes first of an update, now that all of the change is known.
func (l look) begin(u *Update, state *kruise.InPlaceUpdateState, c *Change) Action {
	takesOut := l.policy.takesOut(l.pod, c) || u.TakeOut && lifecycle.HasGate(l.pod, l.gate())
	if takesOut && l.inTraffic() {
		return Action{Verdict: Write, Step: StepNotReady, Write: l.notReady()}
	}
	action := l.change(u, state, c)
	if c.restartsAny(l.pod) && !lifecycle.HasGate(l.pod, l.gate()) {
		action.Notes = append(action.Notes,
			newNote(l.pod, NoteNoGate, "containers restart while the pod is in traffic, since it lacks the readiness gate "+
				string(l.gate())))
	}
	return action
}

// change writes the change, or the first part of it.
func (l look) change(u *Update, state *kruise.InPlaceUpdateState, c *Change) Action {
	if u.GraceSeconds > 0 && (l.policy.Unready == UnreadyAlways || c.restartsAny(l.pod)) {
		return l.patch(StepGrace, func() ([]write.Op, error) { return l.park(u, state, c) })
	}
	settled := c.isMetadata() && !hasMore(state) && incomplete(l.pod, state, l.policy).code == ""
	if settled && c.Empty() {
		return l.patch(StepRelabel, func() ([]write.Op, error) {
			e := l.edit()
			e.update, e.settled = u, true
			return e.encode(), nil
		})
	}
	return l.writeBatch(c, func() ([]write.Op, error) {
		e := l.edit()
		e.update, e.settled = u, settled
		return e.apply(l.fresh(u, state, c), c)
	})
}

// look is one pod at one time under one set of policy.
type look struct {
	pod    *corev1.Pod
	policy Policy
	now    time.Time
}

// gate returns the readiness gate that updates of the pod close.
func (l look) gate() corev1.PodConditionType { return l.policy.Keys.InPlaceReadyOf(l.pod) }

// patch is an action that changes the pod itself.
func (l look) patch(step Step, b body) Action {
	return Action{Verdict: Write, Step: step, Write: l.write(write.Main, b)}
}

// overtake gives the state of an update that is still under way, and the change with what is left of that.
func (l look) overtake(c *Change) (*kruise.InPlaceUpdateState, *Change, error) {
	state, err := StateOf(l.pod, l.policy.Keys)
	if err != nil {
		return nil, nil, err
	}
	if hasMore(state) {
		c = c.over(left(state))
	}
	grace, err := GraceOf(l.pod, l.policy.Keys)
	if err != nil || grace == nil {
		return state, c, err
	}
	older, err := l.planned(grace)
	if err != nil {
		return nil, nil, err
	}
	return state, c.over(older), nil
}

// fresh is the state of an update that begins. Of one that it overtakes remains what the node has not done yet.
func (l look) fresh(u *Update, old *kruise.InPlaceUpdateState, c *Change) *kruise.InPlaceUpdateState {
	s := &kruise.InPlaceUpdateState{
		Revision: u.Revision, UpdateTimestamp: metav1.NewTime(l.now),
		UpdateImages: len(c.Images) > 0, UpdateResources: len(c.Resources) > 0, UpdateEnvFromMetadata: len(c.Env) > 0,
	}
	if incomplete(l.pod, old, l.policy).code == "" {
		return s
	}
	s.UpdateImages = s.UpdateImages || old.UpdateImages
	s.UpdateResources = s.UpdateResources || old.UpdateResources
	s.UpdateEnvFromMetadata = s.UpdateEnvFromMetadata || old.UpdateEnvFromMetadata
	for _, batch := range old.ContainerBatchesRecord {
		batch.Containers = slices.DeleteFunc(slices.Clone(batch.Containers), func(name string) bool {
			_, again := c.Resources[name]
			return again || unresized(l.pod, name).code == ""
		})
		if s.UpdateResources && len(batch.Containers) > 0 {
			s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, batch)
		}
	}
	unmet := maps.Clone(old.LastContainerStatuses)
	maps.DeleteFunc(unmet, func(name string, last kruise.InPlaceUpdateContainerStatus) bool {
		return unstarted(l.pod, old, name, last).code == ""
	})
	if len(unmet) > 0 {
		s.LastContainerStatuses = unmet
	}
	return s
}

// park writes the change into the pod, where it waits for the end of the grace period.
func (l look) park(u *Update, old *kruise.InPlaceUpdateState, c *Change) ([]write.Op, error) {
	metadata, err := c.Metadata.patch()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(kruise.InPlaceUpdateGrace{
		Revision: u.Revision, ContainerImages: c.Images, ContainerRefMetadata: c.RefMetadata, ContainerResources: c.Resources,
		MetaDataPatch: metadata, UpdateEnvFromMetadata: len(c.Env) > 0, GraceSeconds: u.GraceSeconds,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", l.policy.Keys.InPlaceGraceKey(), err)
	}
	e := l.edit()
	e.update = u
	e.annotations[l.policy.Keys.InPlaceGraceKey()] = ptr.To(string(data))
	// Readers that know no grace period take a state without records for a completed update, and open the gate. Those of
	// later batches are left out: OpenKruise would wait for them before it writes these batches.
	s := l.fresh(u, old, c)
	batch, _ := split(l.pod, c.due(l.pod), l.policy.Keys)
	for _, name := range batch {
		if _, ok := c.Images[name]; ok {
			e.record(s, name)
		}
	}
	return e.store(s)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Policy is what may change in a running pod, and how. Give one policy to all functions of this package. The zero value
// is safe where nothing of this project is installed on the nodes: all that needs a node daemon blocks an update in
// place.
type Policy struct {
	// Env is the treatment of environment variables that labels and annotations feed.
	Env Env
	// Resources is which changes of cpu and memory are made in place.
	Resources Resources
	// PodResources does what Resources says also with the resources of the pod as a whole. It needs Kubernetes 1.36.
	PodResources bool
	// Unready is which changes take a pod out of traffic.
	Unready Unready
	// Keys are the labels, annotations and readiness gates of the pods; nil for those of OpenKruise.
	Keys *kruise.Keys
	// Relabel is when the revision label of a pod changes.
	Relabel Relabel
	// IgnoreResources counts an update as complete whatever the node reports about resources.
	IgnoreResources bool
	// RecordRestarts has updates record the restarts that they cause, in the annotation kruise.Keys.PlannedRestarts,
	// for UnplannedRestarts. It adds no write.
	RecordRestarts bool
}

// Env is the treatment of environment variables fed from a label or an annotation that changes.
type Env string

const (
	// EnvBlock rejects such a change in place. It is the default, since no container reads such a variable again
	// unless a node daemon restarts it.
	EnvBlock Env = ""
	// EnvRestart has the node daemon restart the container. Without a daemon the update does not complete.
	EnvRestart Env = "Restart"
	// EnvIgnore changes the metadata and leaves the variables as they are until the container restarts.
	EnvIgnore Env = "Ignore"
)

// Resources is which changes of cpu and memory are made in place.
type Resources string

const (
	// ResourcesFixed rejects every change in place. It is the default.
	ResourcesFixed Resources = ""
	// ResourcesReplaced lets values change that exist before and after.
	ResourcesReplaced Resources = "Replaced"
	// ResourcesAdded also lets a first request or limit appear. The QoS class must stay.
	ResourcesAdded Resources = "Added"
)

// Unready is which changes take a pod that has the readiness gate out of traffic.
type Unready string

const (
	// UnreadyOnRestart is for changes that restart a container: of images, of variables, of resources where
	// the resize policy says so. It is the default.
	UnreadyOnRestart Unready = ""
	// UnreadyAlways is for every change but one of resources alone that restarts nothing, as CloneSet and its
	// siblings promise.
	UnreadyAlways Unready = "Always"
)

// Installation is what a cluster offers to in-place updates. State it once, and derive from it the policies of all
// controllers that update pods, so that they agree on who restarts a container.
// The zero value is a cluster without a node daemon and without resizes.
type Installation struct {
	// EnvDaemon means that a daemon on each node restarts containers whose environment comes from labels or annotations
	// that change. Package containerrestart has what such a daemon decides.
	EnvDaemon bool
	// Resize means that API servers and nodes change cpu and memory of running pods.
	Resize bool
	// ResizePods means that they change those of the pod as a whole, too (spec.resources), as since Kubernetes 1.36.
	ResizePods bool
}

// Policy returns the policy that makes use of all that is installed, and of nothing else.
func (i Installation) Policy() Policy {
	p := Policy{IgnoreResources: !i.Resize, PodResources: i.ResizePods}
	if i.EnvDaemon {
		p.Env = EnvRestart
	}
	if i.Resize {
		p.Resources = ResourcesReplaced
	}
	return p
}

// unreadable returns the error of an annotation of a pod that cannot be read. A user must remove the annotation, or
// recreate the pod.
func unreadable(key string, err error) error {
	return fmt.Errorf("metadata.annotations[%s]: %w", key, err)
}

// StateOf reads how far the latest in-place update of a pod has come; nil for a pod that never had one. Nil keys are
// those of OpenKruise.
func StateOf(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateState, error) {
	key, text := annotation(pod, keys, (*kruise.Keys).InPlaceStateKey, kruise.InPlaceUpdateStateKeyOld)
	return decode[kruise.InPlaceUpdateState](key, text)
}

// GraceOf reads the change that waits in a pod for the end of its grace period; nil when none does. Nil keys are those
// of OpenKruise.
func GraceOf(pod *corev1.Pod, keys *kruise.Keys) (*kruise.InPlaceUpdateGrace, error) {
	key, text := annotation(pod, keys, (*kruise.Keys).InPlaceGraceKey, kruise.InPlaceUpdateGraceKeyOld)
	return decode[kruise.InPlaceUpdateGrace](key, text)
}

// decode reads the text of an annotation; nil for an empty one.
func decode[T any](key, text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return nil, unreadable(key, err)
	}
	return value, nil
}

// annotation is the text under a key, or else under an older one, or the oldest one of OpenKruise. An empty text is as
// good as none.
func annotation(pod *corev1.Pod, keys *kruise.Keys, name kruise.Name, oldest string) (from, text string) {
	if key, text, has := keys.Lookup(pod.Annotations, name); has {
		return key, text
	}
	return oldest, pod.Annotations[oldest]
}
