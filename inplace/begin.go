package inplace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
)

// Update is the update of one pod to a revision.
type Update struct {
	// Pod as it is.
	Pod *corev1.Pod
	// Change from the revision that the pod's label tells to the new one; an empty one where only the revision changes. It
	// is not looked at, and may be nil, for a pod that is at the new one.
	Change *Change
	// Revision is the new value of the revision label, never empty.
	Revision string
	// Labels and Annotations are written together with the change: other revision labels, a lifecycle state.
	Labels, Annotations map[string]string
	// GraceSeconds pass between taking the pod out of traffic and changing its containers.
	GraceSeconds int32
}

// Verdict says what to do with a pod.
type Verdict string

const (
	// DoWrite asks to send a write, and to look again.
	DoWrite Verdict = "Write"
	// DoWait asks to look again when the pod changes, and at the latest after a time.
	DoWait Verdict = "Wait"
	// DoNothing says that no update is under way, or none that is left to us.
	DoNothing Verdict = "Done"
	// DoRecreate says that the update will not complete in this pod.
	DoRecreate Verdict = "Recreate"
)

// Action is what to do next with a pod, and why.
type Action struct {
	// Verdict is what to do.
	Verdict Verdict
	// Write is what to send, with DoWrite.
	Write *Write
	// After is the time after which to look again, with DoWait.
	After time.Duration
	// Notes say why.
	Notes []Note
}

// errNoUpdate is for an Update that says not where to: without this the pod would count as updated.
var errNoUpdate = errors.New("an update needs a change and a revision")

// Begin says what to do first to update a pod. Each write is followed by another call with the pod as the API server
// returned it, until the pod carries the revision; from there on Begin is Step. An update that is still
// under way is overtaken: what it has not done yet, and the new change does not undo, is done with the new one.
func Begin(u Update, r Rules, now time.Time) (Action, error) {
	l := look{u.Pod, r, now}
	switch {
	case u.Revision == "":
		return Action{}, errNoUpdate
	case l.pod.Labels[r.label()] == u.Revision:
		return Step(l.pod, r, now)
	case u.Change == nil:
		return Action{}, errNoUpdate
	case l.pod.DeletionTimestamp != nil:
		return Action{Verdict: DoNothing}, nil
	case finished(l.pod):
		return Action{Verdict: DoRecreate, Notes: []Note{note(l.pod, NoteFinished, "the pod has ended: nothing starts in it any more")}}, nil
	}
	state, change, err := overtake(l.pod, u.Change)
	if err != nil {
		return Action{}, err
	}
	return l.begin(&u, state, change), nil
}

// begin says what comes first of an update, now that all of the change is known.
func (l look) begin(u *Update, state *pub.InPlaceUpdateState, c *Change) Action {
	if l.rules.takesOut(l.pod, c) && l.inTraffic() {
		return Action{Verdict: DoWrite, Write: l.notReady()}
	}
	if u.GraceSeconds > 0 && (l.rules.Unready == UnreadyAlways || l.rules.restarts(l.pod, c)) {
		return write(func(p *patch) error { return l.park(p, u, state, c) })
	}
	if w := l.resize(c); w != nil {
		return Action{Verdict: DoWrite, Write: w}
	}
	return write(func(p *patch) error {
		e := l.edit()
		e.update = u
		if c.Empty() && (state == nil || !hasMore(state) && incomplete(l.pod, state, l.rules).code == "") {
			return e.encode(p) // the revision is all that changes
		}
		return e.apply(p, l.fresh(u, state, c), c)
	})
}

// look is one pod at one time under one set of rules.
type look struct {
	pod   *corev1.Pod
	rules Rules
	now   time.Time
}

// inTraffic says whether the pod is not marked yet, or marked and still ready: it may have become ready after it was read
// for the mark, which then did not say that it is not.
func (l look) inTraffic() bool {
	return statusOfCondition(l.pod, pub.InPlaceUpdateReady) != corev1.ConditionFalse || lifecycle.Ready(l.pod, l.now) != nil
}

// write is an action that changes the pod itself.
func write(build func(*patch) error) Action {
	return Action{Verdict: DoWrite, Write: &Write{Subresource: Main, build: build}}
}

// overtake gives the state of an update that is still under way, and the change with what is left of that.
func overtake(pod *corev1.Pod, c *Change) (*pub.InPlaceUpdateState, *Change, error) {
	state, err := StateOf(pod)
	if err != nil {
		return nil, nil, err
	}
	if state != nil && hasMore(state) {
		c = c.over(left(state))
	}
	grace, err := GraceOf(pod)
	if err != nil || grace == nil {
		return state, c, err
	}
	older, err := planned(pod, grace)
	if err != nil {
		return nil, nil, err
	}
	return state, c.over(older), nil
}

// fresh is the state of an update that begins. Of one that it overtakes remains what the node has not done yet.
func (l look) fresh(u *Update, old *pub.InPlaceUpdateState, c *Change) *pub.InPlaceUpdateState {
	s := &pub.InPlaceUpdateState{
		Revision: u.Revision, UpdateTimestamp: metav1.NewTime(l.now),
		UpdateImages: len(c.Images) > 0, UpdateResources: len(c.Resources) > 0, UpdateEnvFromMetadata: len(c.Env) > 0,
	}
	if old == nil || incomplete(l.pod, old, l.rules).code == "" {
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
	for name, last := range old.LastContainerStatuses {
		if unstarted(l.pod, old, name, last).code == "" {
			continue
		}
		if s.LastContainerStatuses == nil {
			s.LastContainerStatuses = map[string]pub.InPlaceUpdateContainerStatus{}
		}
		s.LastContainerStatuses[name] = last
	}
	return s
}

// park writes the change into the pod, where it waits for the end of the grace period.
func (l look) park(p *patch, u *Update, old *pub.InPlaceUpdateState, c *Change) error {
	metadata, err := c.Metadata.patch()
	if err != nil {
		return err
	}
	data, err := json.Marshal(pub.InPlaceUpdateGrace{
		Revision: u.Revision, ContainerImages: c.Images, ContainerRefMetadata: c.RefMetadata, ContainerResources: c.Resources,
		MetaDataPatch: metadata, UpdateEnvFromMetadata: len(c.Env) > 0, GraceSeconds: u.GraceSeconds,
	})
	if err != nil {
		return fmt.Errorf("encode %s: %w", pub.InPlaceUpdateGraceKey, err)
	}
	e := l.edit()
	e.update = u
	e.annotations[pub.InPlaceUpdateGraceKey] = ptr.To(string(data))
	return e.store(p, l.fresh(u, old, c))
}

// notReady takes a pod out of traffic.
func (l look) notReady() *Write {
	return &Write{Subresource: Status, build: func(p *patch) error {
		mark := corev1.PodCondition{
			Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse,
			Reason: pub.InPlaceUpdateReadyReasonStart, LastTransitionTime: metav1.NewTime(l.now),
		}
		l.unchanged(p)
		p.condition(l.pod, mark)
		if ready := lifecycle.Ready(l.pod, l.now, mark); ready != nil {
			p.condition(l.pod, *ready)
		}
		return nil
	}}
}

func (r Rules) label() string {
	if r.RevisionLabel != "" {
		return r.RevisionLabel
	}
	return pub.PodRevisionLabelKey
}

// takesOut says whether a change takes a pod out of traffic. Without the gate nothing could.
func (r Rules) takesOut(pod *corev1.Pod, c *Change) bool {
	if c.Empty() || !lifecycle.HasGate(pod, pub.InPlaceUpdateReady) {
		return false
	}
	if r.Unready == UnreadyAlways && (len(c.Resources) == 0 || len(c.Images) > 0 || len(c.Env) > 0) {
		return true
	}
	return r.restarts(pod, c)
}

// restarts says whether a change restarts a container that is not harmless.
func (r Rules) restarts(pod *corev1.Pod, c *Change) bool {
	for name, image := range c.Images {
		if has := containerOf(pod, name); has != nil && has.Image != image && !r.harmless(name) {
			return true
		}
	}
	if len(c.Env) > 0 {
		return true // a daemon restarts no container of a pod in traffic
	}
	for name, resources := range c.Resources {
		if has := containerOf(pod, name); has != nil && restartedBy(has, resources) && !r.harmless(name) {
			return true
		}
	}
	return false
}

func (r Rules) harmless(container string) bool {
	return r.Unready != UnreadyAlways && slices.Contains(r.Harmless, container)
}

func restartedBy(c *corev1.Container, change corev1.ResourceRequirements) bool {
	for _, p := range c.ResizePolicy {
		_, limit := change.Limits[p.ResourceName]
		_, request := change.Requests[p.ResourceName]
		if p.RestartPolicy == corev1.RestartContainer && (limit || request) {
			return true
		}
	}
	return false
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func statusOfCondition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	if c := lifecycle.ConditionOf(pod, t); c != nil {
		return c.Status
	}
	return ""
}
