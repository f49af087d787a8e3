package simulation

import (
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// turn is one look of the controller at its workload, and what it does then. Nothing is remembered from one
// turn to the next: all that counts is in the objects.
type turn struct {
	api *client
	now time.Time
	workload
	// pods as they were read, and as they come back from writes.
	pods map[string]*corev1.Pod
	// revisions by name; pods are led from current to update.
	revisions       map[string]*appsv1.ControllerRevision
	current, update *appsv1.ControllerRevision
	limits          scale.Limits

	options inplace.Policy
	rules   inplace.Policy
	// plan, notes and after are for whoever calls.
	plan  scale.Result
	notes []note.Note
	after time.Duration
}

// reconcile takes one turn.
func (t *turn) reconcile() error {
	seen := t.api.read()
	if seen.version < t.api.wrote {
		return nil // what is read is older than what was written: the rest is on its way
	}
	t.workload = seen.workload
	t.pods = make(map[string]*corev1.Pod, len(seen.pods))
	for _, pod := range seen.pods {
		t.pods[pod.Name] = pod
	}
	if wrote, err := t.resolve(seen.revisions); wrote || err != nil {
		return err // what was written is read in the next turn
	}
	if mended, err := t.mendGroups(); mended || err != nil {
		return err
	}
	if err := t.lead(); err != nil {
		return err
	}
	limits, err := t.Spec.limits()
	if err != nil {
		return err
	}
	t.limits = limits
	t.limits.NoRollback = t.current == t.update // then there is nothing to go back to
	plan, err := scale.Plan(t.input())
	if err != nil {
		return err
	}
	if moved, err := t.settle(plan); moved || err != nil {
		return err // what is available is another number now
	}
	t.plan = plan
	t.lookAgain(plan.RequeueAfter)
	if err := t.carryOut(); err != nil {
		return err
	}
	return t.finish()
}

// resolve finds the revisions, and says whether it had to write one.
func (t *turn) resolve(have []*appsv1.ControllerRevision) (wrote bool, err error) {
	data, err := revision.Encode(&t.Spec.Template)
	if err != nil {
		return false, err
	}
	r := revision.Resolve(revision.Input{Owner: t.Name, Data: data, Have: have, Current: t.Current})
	switch r.Verdict {
	case revision.Create:
		return true, t.api.createRevision(&appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Data: runtime.RawExtension{Raw: data}, Revision: r.Number,
		})
	case revision.Bump:
		t.api.numberRevision(r.Name, r.Number)
		return true, nil
	}
	if t.Current == "" {
		t.api.setCurrent(r.Name)
		return true, nil
	}
	t.current, t.update = r.Current, r.Update
	t.revisions = make(map[string]*appsv1.ControllerRevision, len(have))
	for _, h := range have {
		t.revisions[h.Name] = h
	}
	return false, nil
}

// lead takes every pod on in an update that has begun with it.
func (t *turn) lead() error {
	var errs []error
	for _, pod := range t.active() {
		_, err := t.follow(pod, func(pod *corev1.Pod) (inplace.Action, error) {
			return inplace.Next(inplace.Update{Pod: pod}, t.rules, t.now)
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// settle moves pods to where their lifecycle has come, and says whether it moved any.
func (t *turn) settle(plan scale.Result) (moved bool, err error) {
	var errs []error
	for _, pod := range t.active() {
		s := t.situation(pod)
		s.AtTarget = !t.mayMove(pod, plan)
		move := lifecycle.Settle(s)
		moved = moved || move != (lifecycle.Move{})
		errs = append(errs, t.move(pod, move))
	}
	return moved, errors.Join(errs...)
}

// mayMove says whether pods such as this one are to go to the other revision. A hook that holds it before that goes
// on holding it then.
func (t *turn) mayMove(pod *corev1.Pod, plan scale.Result) bool {
	updated := pod.Labels[pub.PodRevisionLabelKey] == t.update.Name
	if t.Spec.Slots {
		return !updated && slices.Index(t.slots(), pod.Name) >= int(t.limits.Partition)
	}
	return plan.Difference.Update > 0 && !updated || plan.Difference.Update < 0 && updated
}

// follow does what it is told to do with a pod, until that is to wait.
func (t *turn) follow(pod *corev1.Pod, next func(*corev1.Pod) (inplace.Action, error)) (*corev1.Pod, error) {
	for {
		action, err := next(pod)
		if err != nil {
			return nil, err
		}
		t.notes = append(t.notes, action.Notes...)
		switch action.Verdict {
		case inplace.Write:
			data, err := action.Write.Data()
			if err != nil {
				return nil, err
			}
			if pod, err = t.patch(change{pod: pod.Name, subresource: action.Write.Subresource, kind: types.JSONPatchType, data: data}); err != nil {
				return nil, err
			}
		case inplace.Recreate:
			return pod, t.recreate(pod)
		default:
			t.lookAgain(action.After)
			return pod, nil
		}
	}
}

func (t *turn) situation(pod *corev1.Pod) lifecycle.Situation {
	completed, _ := inplace.Completed(pod, t.rules)
	return lifecycle.Situation{Pod: pod, Hooks: t.Spec.Hooks, NeedsNode: true, Completed: completed}
}

// input is the workload as a planner sees it.
func (t *turn) input() scale.Input {
	in := scale.Input{
		Now: t.now, Limits: t.limits, MinReadySeconds: t.Spec.MinReadySeconds, Hooks: t.Spec.Hooks, Instances: t.instances(),
	}
	if t.Spec.Paused {
		in.Updates = scale.UpdatesPaused
	}
	if t.Spec.Slots {
		in.Slots, in.InOrder, in.UnavailableFirst = t.slots(), t.Spec.InOrder, true
		in.Limits.NoRollback = false
		if in.InOrder {
			in.Limits.MaxUnavailableScaling = nil
		}
	}
	return in
}

// carryOut does what the plan says.
func (t *turn) carryOut() error {
	var errs []error
	for _, i := range t.plan.Restore {
		errs = append(errs, t.each(i, func(pod *corev1.Pod) error {
			return t.move(pod, lifecycle.Move{To: pub.LifecycleStatePreparingNormal})
		}))
	}
	for _, b := range t.plan.Create {
		errs = append(errs, t.create(b))
	}
	for _, i := range t.plan.Delete {
		errs = append(errs, t.each(i, t.remove))
	}
	target := t.update
	if t.plan.Backward {
		target = t.current
	}
	for _, i := range t.plan.Update {
		errs = append(errs, t.each(i, func(pod *corev1.Pod) error { return t.updatePod(pod, target) }))
	}
	return errors.Join(errs...)
}

// finish makes the update revision the current one when all pods have it.
func (t *turn) finish() error {
	active := t.active()
	for _, pod := range active {
		if pod.Labels[pub.PodRevisionLabelKey] != t.update.Name {
			return nil
		}
	}
	if t.Current != t.update.Name && len(active) == int(t.Spec.Replicas)*t.size() {
		t.api.setCurrent(t.update.Name)
	}
	return nil
}

// lookAgain asks for another turn after a time, at the latest.
func (t *turn) lookAgain(after time.Duration) {
	if after > 0 && (t.after == 0 || after < t.after) {
		t.after = after
	}
}
