package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Reasons of events that all kinds share.
const (
	reasonFailedCreate   = "FailedCreate"
	reasonCreatedPullJob = "CreatedImagePullJob"
	reasonFailedPullJob  = "FailedCreateImagePullJob"
	// reasonInvalidSpec is not among those of the reference, which emits none.
	reasonInvalidSpec = "InvalidSpec"
)

// Event is a reason and a text. The text may refer to %[1]s, the object; %[2]s, the workload; %[3]s, the revision;
// %[4]v, the error; %[5]s, the pod that the object is for; %[6]s, the write. The zero value is no event.
type Event struct{ Reason, Text string }

// Outcome are the events of a write that succeeded, and of one that was rejected.
type Outcome struct{ Succeeded, Failed Event }

// Events are the events of the writes of a kind. A write that was decided upon an older object has none.
type Events struct {
	CreatePod, DeletePod, CreateClaim, DeleteClaim Outcome
	// UpdateInPlace is about changes to another revision. It failed also for a pod that could only change in place, and
	// cannot.
	UpdateInPlace Outcome
	// MarkPod is about pods that are marked to be created again.
	MarkPod Outcome
	// ChangePod and ChangeClaim are about the writes of the kind itself.
	ChangePod, ChangeClaim Outcome
	// Ahead is about what comes before the update of a pod, see workload.Input.Ahead; NotAhead about what cannot be made.
	Ahead    Outcome
	NotAhead Event
	// Waits is about a pod that cannot be created yet. Its error is what the pod waits for.
	Waits Event
	// Invalid returns the event of a workload whose spec cannot be used, without placeholders. Nil and the zero Event are
	// for InvalidSpec.
	Invalid func(client.Object) Event
}

// of are the events of a write.
func (e *Events) of(w *workload.Write) Outcome {
	_, isPod := w.Object.(*corev1.Pod)
	choose := func(pod, claim Outcome) Outcome {
		if isPod {
			return pod
		}
		return claim
	}
	switch {
	case w.Verb == write.Create:
		return choose(e.CreatePod, e.CreateClaim)
	case w.Verb == write.Delete:
		return choose(e.DeletePod, e.DeleteClaim)
	case w.Action == workload.ActionUpdate:
		return e.UpdateInPlace
	case w.Action == workload.ActionUnready:
		return Outcome{Failed: e.UpdateInPlace.Failed}
	case w.Action == workload.ActionMark:
		return e.MarkPod
	case w.Action == workload.ActionAhead:
		return e.Ahead
	case w.Action == workload.ActionFirst, w.Action == workload.ActionPrepare:
		return choose(e.ChangePod, e.ChangeClaim)
	}
	return Outcome{}
}

// emitAnswer emits the event of a write that succeeded, if it has one, and if no more writes follow until the pod is
// updated. Those of writes that failed follow when the pass has ended, which asks about some of them.
func (k *Kit) emitAnswer(o *Observation, w *workload.Write, answer write.Object, err error) {
	if w.Verb == write.Delete && apierrors.IsNotFound(err) {
		err = nil
	}
	if err != nil || w.Action == workload.ActionObserve || w.Action == workload.ActionUpdate &&
		!revision.Match(answer.GetLabels()[kruise.PodRevisionLabelKey], w.Revision) {
		return
	}
	k.emit(o, corev1.EventTypeNormal, k.options.Events.of(w).Succeeded, subjectOf(w, nil))
}

// emitFailures emits what failed of the pods.
func (k *Kit) emitFailures(o *Observation, p *Plan) {
	for _, f := range p.Pass.Failures() {
		if f.Write != nil && f.Write.Action != workload.ActionAsk {
			failed := k.options.Events.of(f.Write).Failed
			k.emit(o, corev1.EventTypeWarning, failed, subjectOf(f.Write, errors.Unwrap(f.Err)))
		}
	}
	for _, f := range p.impossible {
		k.emitImpossible(o, f)
	}
}

func (k *Kit) emit(o *Observation, eventType string, e Event, about subject) {
	if e.Reason != "" {
		k.Event(o.Object, eventType, e.Reason, e.text(o, about))
	}
}

// subject is what an event is about.
type subject struct {
	object, revision, pod, write string
	err                          error
}

func subjectOf(w *workload.Write, err error) subject {
	about := subject{object: w.Object.GetName(), revision: w.Revision, err: err, write: w.String()}
	if w.Pod != nil {
		about.pod = w.Pod.Name
	}
	return about
}

func (e Event) text(o *Observation, about subject) string {
	return fmt.Sprintf(e.Text, about.object, o.Object.GetName(), about.revision, about.err, about.pod, about.write)
}

// emitImpossible emits once that a pod cannot be updated.
func (k *Kit) emitImpossible(o *Observation, f workload.Failure) {
	failed := k.options.Events.UpdateInPlace.Failed
	if f.Ahead {
		failed = k.options.Events.NotAhead
	}
	if k.isNew(o, f.Err) {
		about := subject{object: f.Object, pod: f.Object, err: errors.Unwrap(f.Err)}
		k.emit(o, corev1.EventTypeWarning, failed, about)
	}
}

// isNew reports whether no event was emitted about a failure yet, since the spec changed.
func (k *Kit) isNew(o *Observation, err error) bool {
	return k.emitted.First(o.Key(), fmt.Sprintf("%d %v", o.Object.GetGeneration(), err))
}

// emitWaits emits what a pod that is to be created waits for, once for as long as that is the same.
func (k *Kit) emitWaits(o *Observation, p *Plan) {
	text := ""
	if waits, e := p.Waits, k.options.Events.Waits; len(waits) > 0 && e.Reason != "" {
		text = e.text(o, subject{object: waits[0].Object, pod: waits[0].Object, err: errors.New(waits[0].Text)})
	}
	none := text == "" && p.Pass.Result().Difference.CreateMissing > 0 // pods are missing, and none is to be created now
	if !none && k.emitted.Changed(o.Key(), text) {
		k.Event(o.Object, corev1.EventTypeWarning, k.options.Events.Waits.Reason, text)
	}
}

// emitInvalid emits once which fields of the spec cannot be used. unusable is set where no pods can be created.
func (k *Kit) emitInvalid(o *Observation, err error, unusable bool) {
	if err == nil || !k.isNew(o, err) {
		return
	}
	if of := k.options.Events.Invalid; of != nil && unusable {
		if e := of(o.Object); e.Reason != "" {
			k.Warningf(o.Object, e.Reason, "%s", e.Text)
			return
		}
	}
	k.Warningf(o.Object, reasonInvalidSpec, "%v", err)
}

// failures returns the failures of a pass as two errors: those about the number of pods, and those about their updates.
// impossible are failures of the latter that no write caused: pods that can only be updated in place and cannot be, and
// pods of which what comes ahead of the update is not possible. Those that the error leaves out, because there are
// many, are not among them.
func failures(pass *workload.Pass) (impossible []workload.Failure, scaling, updating error) {
	var ofScaling, ofUpdates []workload.Failure
	for _, f := range pass.Failures() {
		if f.NotInPlace {
			f.Err = fmt.Errorf("pod %s can only be updated in place: %w", f.Object, f.Err)
		}
		if (f.NotInPlace || f.Ahead) && len(ofUpdates) < workload.MaxErrors {
			impossible = append(impossible, f)
		}
		if f.Scaling {
			ofScaling = append(ofScaling, f)
		} else {
			ofUpdates = append(ofUpdates, f)
		}
	}
	return impossible, workload.Err(ofScaling), workload.Err(ofUpdates)
}

// errOutdated ends a series of passes whose writes the API server finds outdated although each pass observes the pods
// again.
var errOutdated = errors.New(
	"pods are not what was observed, time and again: another writer changes them, or the cache stands still")

// mostOutdated is how many passes in a row may find that they were decided upon older objects.
const mostOutdated = 10

// outdated counts the passes in a row, this one included, that were decided upon older objects. Where they are too many
// it returns errOutdated, so that the pauses between them grow.
func outdated(pass *workload.Pass, before int) (count int, err error) {
	if !pass.IsOutdated() {
		return 0, nil
	}
	if before >= mostOutdated {
		err = errOutdated
	}
	return before + 1, err
}

// Controller is how the controller of a kind runs.
type Controller struct {
	Name    string
	Options controller.Options
	// Pods chooses the events of pods that matter.
	Pods WatchOptions
}

// Controller begins the controller of a kind, which reconciles a workload on events of the workload and of its pods. It
// comes before the manager starts. The kind adds its other events.
func (k *Kit) Controller(ctx context.Context, mgr ctrl.Manager, c Controller) (*builder.Builder, error) {
	bound, of := k.Bind(mgr, c.Name, c.Options), k.options.Kind
	if err := k.Setup(ctx, mgr, c.Name); err != nil {
		return nil, err
	}
	c.Pods.Now = k.Now
	changes := Changes(c.Pods)
	bound.For(stored.Untyped(of),
		builder.WithPredicates(IgnoreRewording(k.options.Scaling, k.options.Updating)))
	bound.Watches(&corev1.Pod{}, owned.ByAfter(of.Group, of.Kind, k.pause),
		builder.WithPredicates(owned.Concerns(of.Group, of.Kind), changes))
	if k.options.Stem != nil {
		bound.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(k.OfOrphan),
			builder.WithPredicates(owned.ConcernsOrphans(), changes))
	}
	return bound, nil
}

// The pause before a pass that a change of a pod asks for. A pass reads all pods of the workload, some microseconds for
// each, so that passes of a large workload whose pods change all the time take a twentieth of one core.
const (
	pausePerPod = 100 * time.Microsecond
	leastPause  = 10 * time.Millisecond
	mostPause   = time.Second
)

// pauseOf returns the pause of a workload by its number of pods; zero for a small one.
func pauseOf(pods int) time.Duration {
	if after := time.Duration(pods) * pausePerPod; after >= leastPause {
		return min(after, mostPause)
	}
	return 0
}

// pause returns the pause of a workload as of its last pass.
func (k *Kit) pause(name types.NamespacedName) time.Duration { return k.memory.Recall(name).pause }

// OfOrphan are the requests of the workloads that a pod without a controller can belong to by its name, see
// Options.Stem; none where there is no such workload.
func (k *Kit) OfOrphan(ctx context.Context, pod client.Object) []reconcile.Request {
	name, ok := k.options.Stem(pod.GetName())
	if !ok || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	return k.Existing(ctx, types.NamespacedName{Namespace: pod.GetNamespace(), Name: name})
}

// cut is what the names of pods of a workload have of its name.
func (k *Kit) cut(name string) string {
	if k.options.Cut == nil {
		return name
	}
	return k.options.Cut(name)
}

// Existing is the request of a workload; none where the cache has no such workload.
func (k *Kit) Existing(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	if err := k.Cached.Get(ctx, name, stored.Untyped(k.options.Kind)); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// WatchOptions say which changes of pods pass.
type WatchOptions struct {
	// SkipQuiet leaves out changes in nothing that the plan of a workload reads, such as the status of one container.
	SkipQuiet bool
	// Policy is that of the workload's updates in place.
	Policy inplace.Policy
	// Now is the clock.
	Now func() time.Time
}

// Changes is a predicate of the changes that pass. Created and deleted pods always pass, a resync does not.
func Changes(o WatchOptions) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isPod := e.ObjectOld.(*corev1.Pod)
		pod, isToo := e.ObjectNew.(*corev1.Pod)
		if !isPod || !isToo {
			return true
		}
		return old.ResourceVersion != pod.ResourceVersion && (!o.SkipQuiet || o.matters(old, pod))
	}}
}

// matters reports whether a workload may act on what changed in a pod.
func (o WatchOptions) matters(old, pod *corev1.Pod) bool {
	return old.Generation != pod.Generation || old.Spec.NodeName != pod.Spec.NodeName ||
		(old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		workload.IsFinished(old) != workload.IsFinished(pod) || workload.IsReady(old) != workload.IsReady(pod) ||
		isReady(old) != isReady(pod) || !maps.Equal(old.Labels, pod.Labels) ||
		!slices.Equal(old.Finalizers, pod.Finalizers) ||
		!apiequality.Semantic.DeepEqual(old.OwnerReferences, pod.OwnerReferences) || stuck(old) != stuck(pod) || o.isDue(pod)
}

// isDue reports whether the next write of a pod's update is the workload's.
func (o WatchOptions) isDue(pod *corev1.Pod) bool {
	action, err := inplace.Next(inplace.Update{Pod: pod}, o.Policy, o.Now())
	if err != nil || action.Verdict == inplace.Write {
		return true
	}
	if lifecycle.StateOf(pod) != kruise.LifecycleStateUpdating {
		return false
	}
	done, _ := inplace.Completed(pod, o.Policy)
	return done
}

// isReady reports what the kubelet says, besides what workload.IsReady makes of it.
func isReady(pod *corev1.Pod) bool {
	c := lifecycle.ConditionOf(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// stuck returns the code of what keeps a pod from becoming ready; empty for nothing.
func stuck(pod *corev1.Pod) string {
	n, _ := workload.Stuck(pod)
	return n.Code
}
