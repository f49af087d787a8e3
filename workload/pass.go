package workload

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/scale"
)

// Pass is one pass over the pods of a workload. It is not safe for concurrent use.
type Pass struct {
	in        Input
	instances []*instance
	changes   changes
	labels    map[string]map[string]string
	ranks     map[string]int
	result    scale.Result
	repeats   repeats
	order     order
	// restarts are what is known of restarts, and restarting is what the pass does about failed pods, by instance.
	restarts   Restarts
	restarting map[string]restarting

	stage stage
	// round counts the stages that have begun. A member is busy in the round in which its last write was returned.
	round int32
	// now is the time of the latest answer, and of the observation before the first one.
	now time.Time
	// replans counts the plans made because instances of the one before were rejected.
	replans int
	// broken means that a write failed whose outcome is unknown, or that others would fail too; outdated that one was
	// decided upon an older object.
	broken, outdated bool
	// scaled and moved mean that the number or the state of pods has changed, which the next pass observes first.
	scaled, moved bool
	// uncertain means that a pod may be deleted, although the answer is an error.
	uncertain bool
	// deferred means that a slot to fill waits, as for the name of a claim.
	deferred bool
	// creations are those of the current plan, and built what Build returned for them.
	creations []Creation

	failures []Failure
	notes    []note.Note
	after    time.Duration
}

// stage is a part of a pass. All writes of a stage are independent of each other.
type stage int8

const (
	// stageStore makes the update revision the newest.
	stageStore stage = iota
	// stageFirst sends the writes of the caller, and deletes pods that have finished.
	stageFirst
	// stageComplete creates what groups lack, and deletes what is left of groups without a leader.
	stageComplete
	// stageScale restores, creates or deletes instances.
	stageScale
	// stageFree deletes instances where none of those that are missing can be created.
	stageFree
	// stageContinue continues updates that have begun, and moves states.
	stageContinue
	// stageAsk asks for the updates that begin next.
	stageAsk
	// stageUpdate begins updates.
	stageUpdate
	// stageReplan begins other updates where some were refused.
	stageReplan
	// stageTrim deletes old revisions.
	stageTrim
	stageEnd
)

const (
	// maxReplans bounds the plans of a pass.
	maxReplans = 3
	// maxWritesPerPod bounds the writes of a pod in one pass, whatever they are.
	maxWritesPerPod = 12
	// retryOutdated is when to observe again after a write based on a stale object, the first times in a
	// row.
	retryOutdated = time.Second
	// retryRefused is when to ask again for an update that was refused.
	retryRefused = time.Second
	// retryEviction is when to ask again for an eviction that was refused, where the API server suggests no longer time.
	retryEviction = 5 * time.Second
)

// Plan begins a pass. The error is one of scale.Plan, also for what is wrong with Input.Group.
func Plan(in Input) (*Pass, error) {
	in.Scale.Keys = in.Policy.Keys
	p := &Pass{in: in, now: in.Scale.Now, repeats: repeats{known: in.Repeats, revision: in.Update.Name}}
	p.labels = map[string]map[string]string{}
	if err := in.check(); err != nil {
		return nil, err
	}
	p.changes, p.order, p.restarts = newChanges(&p.in), orderOf(&p.in), in.Restarts
	p.observeRestarts()
	p.observe()
	if err := p.plan(planAll); err != nil {
		return nil, err
	}
	return p, nil
}

// extent is what a plan may do.
type extent int8

const (
	planAll extent = iota
	// planExisting leaves missing instances missing, planUpdates leaves the number of instances as it is.
	planExisting
	planUpdates
)

// plan makes a plan of the numbers, of the instances as they are now.
func (p *Pass) plan(e extent) error {
	in := p.in.Scale
	in.UpdateOnly, in.NoCreate = in.UpdateOnly || e == planUpdates, in.NoCreate || e == planExisting
	in.Instances = make([]scale.Instance, 0, len(p.instances))
	for _, i := range p.instances {
		in.Instances = append(in.Instances, p.instanceOf(i))
	}
	var err error
	p.result, err = scale.Plan(in)
	p.creations = nil
	for _, c := range p.result.Create {
		creation := Creation{Slot: c.Slot, Revision: p.in.Current.Name}
		if c.Updated {
			creation.Revision = p.in.Update.Name
		}
		if len(p.in.Members) > 0 {
			creation.Member = p.in.Members[0] // the others follow when the leader exists
		}
		p.creations = append(p.creations, creation)
	}
	for _, i := range p.instances {
		i.chosen = false
	}
	for i := range p.result.Update {
		p.find(p.result.Update[i].Name).chosen = true
	}
	return err
}

// planAgain makes another plan. A plan that fails is empty.
func (p *Pass) planAgain(e extent) {
	if err := p.plan(e); err != nil {
		p.fail(Failure{Err: err})
	}
}

// Next returns the next writes, and nil at the end of the pass. They are independent of each other, so send them in any
// order or at the same time, and give each answer to Answer, from one goroutine at a time. A write that was not sent
// needs no answer. Next must only be called when no write is under way.
func (p *Pass) Next() []*Write {
	if writes := p.nextStored(); len(writes) > 0 {
		return writes
	}
	for p.stage+1 < stageEnd {
		p.stage++
		if writes := p.begin(); len(writes) > 0 {
			return writes
		}
	}
	return nil
}

// nextStored returns the next writes that make the update revision the newest. Where these fail, the pass ends.
func (p *Pass) nextStored() []*Write {
	if p.stage != stageStore || p.in.Store == nil {
		return nil
	}
	writes := p.stored(p.in.Store.Next())
	if p.in.Store.Err() != nil {
		p.stage = stageEnd
	}
	return writes
}

// begin returns the first writes of the stage.
func (p *Pass) begin() []*Write {
	p.round++
	begin := [stageEnd]func(*Pass) []*Write{
		stageFirst:    (*Pass).first,
		stageComplete: (*Pass).complete,
		stageScale:    (*Pass).scale,
		stageFree:     (*Pass).free,
		stageContinue: (*Pass).continueAll,
		stageAsk:      (*Pass).ask,
		stageUpdate:   (*Pass).updateAll,
		stageReplan:   (*Pass).replan,
		stageTrim:     (*Pass).trim,
	}
	return begin[p.stage](p)
}

// The codes of notes, besides those of packages scale and inplace.
const (
	// NoteNotInPlace is a pod that is recreated, because its change is not possible in place.
	NoteNotInPlace = "NotInPlace"
	// NoteRefused is an instance whose update MayUpdate or the answer to a question refused.
	NoteRefused = "UpdateRefused"
	// NoteAhead is a pod whose update waits for what comes before it, see Input.Ahead.
	NoteAhead = "UpdateWaits"
	// NoteNotEvicted is a pod whose eviction the API server refused for now, as for a PodDisruptionBudget without room.
	NoteNotEvicted = "EvictionRefused"
	// NotePodsLimited is a group whose pods wait for their update, for a bound of a role or of the workload.
	NotePodsLimited = "PodsUpdateLimited"
	// NoteRestart is a pod that has failed, see Restart.
	NoteRestart = "PodRestart"
	// NoteReverted is a pod whose writes another writer reverts.
	NoteReverted = "WritesReverted"
	// NoteImagePull is a pod whose node cannot pull an image.
	NoteImagePull = "ImagePullFailed"
	// NoteCrashing is a pod with a container that fails again and again.
	NoteCrashing = "ContainerCrashing"
	// NoteConfig is a pod with a container that its node cannot create.
	NoteConfig = "ContainerConfigError"
	// NoteUnschedulable is a pod that fits on no node.
	NoteUnschedulable = "PodUnschedulable"
)

// textReverted is why a write is not made again now.
const textReverted = "writes of the pod do not last: another writer reverts them"

func (p *Pass) note(level note.Level, code, object, text string) {
	p.notes = append(p.notes, note.Note{Level: level, Code: code, Object: object, Text: text})
}

// Notes returns why the pass is as it is and what the rest waits for: the notes of the plan, then those of pods by
// name.
func (p *Pass) Notes() []note.Note {
	notes := slices.Clone(p.notes)
	for _, i := range p.instances {
		for _, m := range i.members {
			if n, stuck := Stuck(m.pod); stuck {
				notes = append(notes, n)
			}
		}
	}
	slices.SortStableFunc(notes, func(a, b note.Note) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
	return slices.Concat(p.result.Notes, slices.Compact(notes))
}

// crashes is how often a container has restarted before it counts as crashing.
const crashes = 2

// Stuck returns the note of a pod that does not become ready until a user changes an object: an image, a
// configuration, the room on the nodes. The note of a pod stays the same while its node tries again.
func Stuck(pod *corev1.Pod) (note.Note, bool) {
	blocked := func(code, format string, args ...any) (note.Note, bool) {
		return note.Note{Level: note.Blocked, Code: code, Object: pod.Name, Text: fmt.Sprintf(format, args...)}, true
	}
	if c := lifecycle.ConditionOf(pod, corev1.PodScheduled); pod.Spec.NodeName == "" && c != nil &&
		c.Reason == corev1.PodReasonUnschedulable {
		return blocked(NoteUnschedulable, "%s", c.Message)
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for k := range list {
			if code, text := stuckContainer(pod, &list[k]); code != "" {
				return blocked(code, "container %s %s", list[k].Name, text)
			}
		}
	}
	return note.Note{}, false
}

// stuckContainer returns what keeps a container from running, and no code for nothing.
func stuckContainer(pod *corev1.Pod, s *corev1.ContainerStatus) (code, text string) {
	waits, last := s.State.Waiting, s.LastTerminationState.Terminated
	switch {
	case waits != nil &&
		slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, waits.Reason):
		return NoteImagePull, "cannot pull image " + imageOf(pod, s.Name)
	case waits != nil && slices.Contains([]string{"CreateContainerConfigError", "CreateContainerError"}, waits.Reason):
		return NoteConfig, "cannot be created: " + waits.Message
	case waits != nil && waits.Reason == "RunContainerError":
		return NoteCrashing, "cannot start: " + waits.Message
	case s.Ready || s.RestartCount < crashes || last == nil || last.ExitCode == 0:
		return "", ""
	case waits == nil || waits.Reason == "CrashLoopBackOff":
		return NoteCrashing, fmt.Sprintf("fails with exit code %d", last.ExitCode)
	}
	return "", ""
}

// imageOf is the image that a container is to run, rather than the one in its status, which may be of the one before.
func imageOf(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for k := range list {
			if list[k].Name == container {
				return list[k].Image
			}
		}
	}
	return ""
}

// RequeueAfter is when to look again although nothing changes; 0 for never.
func (p *Pass) RequeueAfter() time.Duration { return p.after }

// Failures are what went wrong, by object. Each stopped only its own instance.
func (p *Pass) Failures() []Failure {
	sorted := slices.Clone(p.failures)
	slices.SortStableFunc(sorted, func(a, b Failure) int { return cmp.Compare(a.Object, b.Object) })
	return sorted
}

// MaxErrors is how many failures the error of Err lists.
const MaxErrors = 8

// Err joins failures into one error, which is the same whatever the order of the answers. Nil for none.
func Err(failures []Failure) error {
	var all []error
	for k, f := range failures {
		if k == MaxErrors {
			all = append(all, fmt.Errorf("%d more", len(failures)-MaxErrors))
			break
		}
		all = append(all, f.Err)
	}
	return errors.Join(all...)
}

// Result returns the plan of the numbers.
func (p *Pass) Result() scale.Result { return p.result }

// Creations returns the pods that the pass is to create, before Next.
func (p *Pass) Creations() []Creation { return slices.Clone(p.creations) }

// Pods returns the pods that are neither finished nor terminating, as the last answers left them, by instance.
func (p *Pass) Pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(p.instances))
	for _, i := range p.instances {
		for _, m := range i.members {
			pods = append(pods, m.pod)
		}
	}
	return pods
}

// Counts are the numbers of pods for a status.
type Counts struct {
	Pods, Ready, Available                      int32
	UpdatedPods, UpdatedReady, UpdatedAvailable int32
}

// Counts counts the pods as the last answers left them.
func (p *Pass) Counts() Counts {
	var c Counts
	add := func(is, updated bool, all, ofUpdated *int32) {
		if is {
			*all++
		}
		if is && updated {
			*ofUpdated++
		}
	}
	for _, pod := range p.Pods() {
		updated := p.in.IsUpdated(pod)
		available, _ := p.in.Scale.Available(pod)
		add(true, updated, &c.Pods, &c.UpdatedPods)
		add(isReady(pod, p.in.Policy.Keys), updated, &c.Ready, &c.UpdatedReady)
		add(available, updated, &c.Available, &c.UpdatedAvailable)
	}
	return c
}

// IsReady reports whether a pod serves, whatever its hooks say.
func IsReady(pod *corev1.Pod) bool { return isReady(pod, nil) }

func isReady(pod *corev1.Pod, keys *kruise.Keys) bool {
	is := func(t corev1.PodConditionType, absent bool) bool {
		c := lifecycle.ConditionOf(pod, t)
		return c == nil && absent || c != nil && c.Status == corev1.ConditionTrue
	}
	return pod.Status.Phase == corev1.PodRunning && is(corev1.PodReady, false) && is(keys.InPlaceReadyOf(pod), true)
}
