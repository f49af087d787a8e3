package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Parts configures the kind-specific steps of a pass. Each function is called when the steps before it are answered.
type Parts struct {
	// PreDownload returns the rollout for which nodes pull images ahead.
	PreDownload func() Rollout
	// Report returns the status.
	Report func() Report
	// Limit is how many revisions stay besides those that pods have.
	Limit int32
	// Last returns writes that follow the status; nil for none.
	Last func() []*write.Write
	// Answered is called after each answer to a write of the pods, from several goroutines; nil for no call.
	Answered func(w *workload.Write, err error)
}

// run makes the pass of a workload: it stores the revision, creates pull jobs, updates the pods, writes the status, and
// deletes old revisions. It emits the events of the pass, and remembers what the next pass needs. The error is that of
// the revision, or of the status.
func (k *Kit) run(ctx context.Context, o *Observation, p *Plan, of Parts) error {
	if !o.IsDeleted() {
		if err := k.Run(ctx, o.Key(), p.Store, k.Ledgers()...); err != nil {
			k.Warningf(o.Object, reasonFailedCreate, "failed to keep the revision: %v", err)
			return err
		}
	}
	o.Revisions = p.Store.Stored(o.Revisions)
	if k.PullJobs && !o.IsDeleted() {
		p.failed = append(p.failed, k.preDownload(ctx, o, of.PreDownload()))
	}
	if p.Runs(o) {
		k.runPods(ctx, o, p, of)
	}
	p.conclude(o)
	report := of.Report()
	report.scaling, report.updating = p.Invalid, o.Reported
	err := k.report(ctx, o, report)
	if err == nil {
		p.failed = append(p.failed, k.trim(ctx, o, p, of))
	}
	k.remember(ctx, o, p)
	return err
}

// preDownload has the nodes pull the images of the update revision. A job that is refused for good is left out. After
// another failure the next pass goes on, and the label of the revision follows when all jobs exist.
func (k *Kit) preDownload(ctx context.Context, o *Observation, rollout Rollout) error {
	jobs, err := PlanPreDownload(rollout)
	if err != nil {
		return err
	}
	for _, w := range jobs.writes() {
		answer, err := k.Send(ctx, o.Key(), w, k.Ledgers()...)
		k.emitPullJob(o, w, err)
		switch fresh, isRevision := answer.(*appsv1.ControllerRevision); {
		case w.Verb == write.Delete && apierrors.IsNotFound(err):
		case w.Verb == write.Create && (apierrors.IsAlreadyExists(err) || write.IsFinal(err)):
		case err != nil:
			return fmt.Errorf("%s: %w", w, err)
		case isRevision:
			o.Revisions = revision.Replace(o.Revisions, fresh)
		}
	}
	return nil
}

// runPods makes the pass of the pods, which has the failures.
func (k *Kit) runPods(ctx context.Context, o *Observation, p *Plan, of Parts) {
	_ = driver.Run(ctx, p.Pass, driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(k.Client, k.Live), Now: k.Now, Owner: o.Key(), Ledgers: k.Ledgers(),
		Ask: func(ctx context.Context, w *workload.Write) error { return k.options.Ask(ctx, w.Asked) },
		Answered: func(w *workload.Write, answer write.Object, err error) {
			if of.Answered != nil {
				of.Answered(w, err)
			}
			k.emitAnswer(o, w, answer, err)
		},
	})
}

// trim deletes revisions that are beyond the limit, and that no pod has, and makes the last writes of the kind.
func (k *Kit) trim(ctx context.Context, o *Observation, p *Plan, of Parts) error {
	var writes []*write.Write
	if !o.IsDeleted() {
		writes = p.Pass.Trim(o.Revisions, of.Limit)
	}
	if of.Last != nil {
		writes = append(writes, of.Last()...)
	}
	return k.WriteEach(ctx, o.Key(), writes, k.Ledgers()...)
}

// Note keeps what a workload waits for until its next pass.
func (k *Kit) Note(o *Observation, p *Plan) {
	k.memory.Note(o.Key(), func(known *Known) { known.wait = p.wait })
}

// remember keeps what the next pass needs, and emits what follows from the pass as a whole.
func (k *Kit) remember(ctx context.Context, o *Observation, p *Plan) {
	k.Note(o, p)
	k.memory.Note(o.Key(), func(known *Known) {
		known.pause = pauseOf(len(o.Active) + len(o.Inactive))
		if p.Runs(o) {
			known.Outdated, known.Repeats, known.rejected = p.outdated, p.Pass.Repeats(), o.rejected
		}
	})
	if !p.Runs(o) {
		return
	}
	k.emitFailures(o, p)
	k.emitWaits(o, p)
	if k.options.Explain != nil {
		k.options.Explain(ctx, o.Key(), p.Notes())
	}
}

// finish is the result of a pass. unreported is why the status is not written; the controller then retries. Otherwise
// errors follow from the writes, and of a template whose pods cannot be managed only another spec mends them.
func (k *Kit) finish(request ctrl.Request, p *Plan, unreported error) (ctrl.Result, error) {
	if unreported != nil {
		return k.Result(request, p.After.After(), unreported)
	}
	err := errors.Join(append([]error{p.ScaleErr, p.UpdateErr}, p.failed...)...)
	if err != nil && p.Invalid != nil {
		err = terminal(err)
	}
	return k.Result(request, p.After.After(), err)
}

// terminal keeps a controller from retrying.
func terminal(err error) error { return reconcile.TerminalError(err) }

// emitPullJob emits the event of the creation of a pull job.
func (k *Kit) emitPullJob(o *Observation, w *write.Write, err error) {
	job, ok := w.Object.(*v1beta1.ImagePullJob)
	switch {
	case !ok || w.Verb != write.Create || apierrors.IsAlreadyExists(err):
	case err != nil:
		k.Normalf(o.Object, reasonFailedPullJob, "failed to create ImagePullJob %s: %v", job.Name, err)
	default:
		k.Normalf(o.Object, reasonCreatedPullJob, "created ImagePullJob %s for image %s", job.Name, job.Spec.Image)
	}
}

// Plan is what one pass is to do. All of it follows from the observation.
type Plan struct {
	Resolution revision.Resolution
	// Store makes the template the newest revision.
	Store *revision.Storage
	// Current and Update are the names of the revisions that pods go from and to.
	Current, Update string
	// Data is the template as a revision stores it.
	Data []byte
	Pass *workload.Pass
	// Invalid is why pods of the template cannot be managed.
	Invalid error
	// NeedsPods means that the pass does harm where the cache lacks a pod: it would create the pod twice, or delete its
	// claims. NeedsObject means that it does so where the cache shows an older workload, by more than the pods that it
	// deletes or updates: it hands claims over.
	NeedsPods, NeedsObject bool

	// What follows is known once the pass is executed.

	ScaleErr, UpdateErr error
	After               passes.Earliest
	// Waits are what new pods wait for, set when the pass creates them.
	Waits []note.Note

	wait Wait
	// impossible are failures that no write caused. outdated is how many passes in a row were decided upon older objects.
	// Both are known once the writes of pods are answered.
	impossible []workload.Failure
	outdated   int
	// failed has the failures of the steps besides that of the pods.
	failed []error
}

// Revision is the template of a workload as its history keeps it.
type Revision struct {
	Template *corev1.PodTemplateSpec
	// Current and Update are the names of revisions in the status, Collisions and ObservedGeneration its fields.
	Current, Update    string
	Collisions         *int32
	ObservedGeneration int64
	// Raised are annotations of a revision that is created, or that is older and becomes the newest.
	Raised map[string]string
	// HashLabel is a label of a new revision that has its hash, besides controller.kubernetes.io/hash; empty for none.
	HashLabel string
}

// Plan begins a plan: it resolves the revisions.
func (o *Observation) Plan(r Revision) (*Plan, error) {
	data, err := revision.Encode(r.Template)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	p := &Plan{Data: data}
	p.After.In(o.RecheckAfter)
	adopt := o.takeOver(&r)
	p.Resolution = revision.Resolve(revision.Input{
		Owner: o.Object.GetName(), Data: data, Have: o.Revisions, Current: r.Current, Collisions: r.Collisions,
	})
	p.Update, p.Current = p.Resolution.Name, p.Resolution.Name
	if p.Resolution.Current != nil {
		p.Current = p.Resolution.Current.Name
	}
	labels := map[string]string{}
	maps.Copy(labels, r.Template.Labels)
	if r.HashLabel != "" {
		labels[r.HashLabel] = p.Resolution.Hash
	}
	for _, rev := range o.OrphanRevisions {
		w := o.adopt(rev)
		adopt = append(adopt, &w)
	}
	annotations := maps.Clone(o.Object.GetAnnotations())
	delete(annotations, revision.UnknownFieldsKey) // takeOver alone writes it
	p.Store, err = revision.Store(revision.Wanted{
		Resolution: p.Resolution, Namespace: o.Object.GetNamespace(), Owner: o.ControllerRef(), Adopt: adopt,
		Labels: labels, Annotations: annotations, RaisedAnnotations: r.Raised,
	})
	return p, err
}

// Revision is the revision of the template as it is once the plan is executed.
func (p *Plan) Revision() *appsv1.ControllerRevision {
	if p.Resolution.Update != nil {
		return p.Resolution.Update
	}
	newest := &appsv1.ControllerRevision{}
	newest.Name, newest.Data.Raw = p.Update, p.Data
	return newest
}

// Runs reports whether the pass is executed. The pods of a workload that is deleted are the garbage collector's.
func (p *Plan) Runs(o *Observation) bool { return p.Invalid == nil && !o.IsDeleted() }

// Notes are why the plan is as it is, and what pods wait for.
func (p *Plan) Notes() []note.Note { return append(p.Pass.Notes(), p.Waits...) }

// conclude is what the answers to the writes of pods come to.
func (p *Plan) conclude(o *Observation) {
	if !p.Runs(o) {
		p.ScaleErr = p.Invalid
		return
	}
	p.After.In(p.Pass.RequeueAfter())
	p.impossible, p.ScaleErr, p.UpdateErr = failures(p.Pass)
	var err error
	if p.outdated, err = outdated(p.Pass, o.Known.Outdated); err != nil {
		p.UpdateErr = errors.Join(p.UpdateErr, err)
	}
}

// Rollout is what every pre-download has.
func (o *Observation) Rollout(p *Plan) Rollout {
	return Rollout{
		Namespace: o.Object.GetNamespace(), Owner: o.ControllerRef(), Jobs: o.Jobs, Over: p.Current == p.Update,
		Current: revision.Find(o.Revisions, p.Current), Update: revision.Find(o.Revisions, p.Update),
	}
}

const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// noteRejected is the code of a note about pods that are not created yet because a kubelet rejected the pods before
// them.
const noteRejected = "PodRejected"

// rejections remembers that kubelets rejected pods of a workload lately. As many new pods as were rejected wait for a
// pause, which doubles while the new pods are rejected, too; without it, a workload and a kubelet would create and
// reject pods without end. Pods that nodes take do not wait for those that nodes reject. The zero value remembers none.
type rejections struct {
	generation int64
	// since is when the pause began, and count how many pods were rejected since then.
	since time.Time
	pause time.Duration
	count int
	// seen are the rejected pods that exist, last the one that was seen last.
	seen map[types.UID]bool
	last note.Note
}

// next returns what is to be remembered after a look at the pods that have finished.
func (r rejections) next(generation int64, pods []*corev1.Pod, now time.Time) rejections {
	next := rejections{generation: generation}
	if r.generation == generation && now.Sub(r.since) <= r.pause+longestPause {
		next.since, next.pause, next.count, next.last = r.since, r.pause, r.count, r.last
	}
	fresh := 0
	for _, pod := range pods {
		if !isRejected(pod) {
			continue
		}
		if next.seen == nil {
			next.seen = map[types.UID]bool{}
		}
		next.seen[pod.UID] = true
		if !r.seen[pod.UID] {
			fresh++
			next.last = note.Note{
				Level:  note.Waiting,
				Code:   noteRejected,
				Object: pod.Name,
				Text:   fmt.Sprintf("a kubelet rejected it: %.100s", pod.Status.Reason),
			}
		}
	}
	switch {
	case fresh == 0:
	case next.since.IsZero(): // one rejection is no sequence: the replacement does not wait
		next.since = now
	case now.Sub(next.since) < next.pause: // of the same pods
		next.count += fresh
	default:
		next.since, next.pause, next.count = now, min(max(2*next.pause, firstPause), longestPause), fresh
	}
	return next
}

// wait returns how many new pods wait, and how long.
func (r rejections) wait(now time.Time) (pods int, d time.Duration) {
	if d = r.since.Add(r.pause).Sub(now); d <= 0 {
		return 0, 0
	}
	return r.count, d
}

// isRejected reports whether a pod has failed before any of its containers ran: its kubelet rejected it.
func isRejected(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed {
		return false
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].ContainerID != "" {
				return false
			}
		}
	}
	return true
}

// MaxCreations returns how many pods one pass builds: no more than the package function, and as many fewer as wait
// because kubelets rejected others.
func (p *Plan) MaxCreations(o *Observation, creations int, spec any) int {
	most := MaxCreations(creations, spec)
	if waiting, d := o.rejected.wait(o.Now); waiting > 0 && creations > 0 {
		p.After.In(d)
		p.Waits = append(p.Waits, o.rejected.last)
		most = min(most, max(creations-waiting, 0))
	}
	return most
}
