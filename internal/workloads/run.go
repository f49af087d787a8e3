package workloads

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
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
	job, is := w.Object.(*v1beta1.ImagePullJob)
	switch {
	case !is || w.Verb != write.Create || apierrors.IsAlreadyExists(err):
	case err != nil:
		k.Normalf(o.Object, reasonFailedPullJob, "failed to create ImagePullJob %s: %v", job.Name, err)
	default:
		k.Normalf(o.Object, reasonCreatedPullJob, "created ImagePullJob %s for image %s", job.Name, job.Spec.Image)
	}
}
