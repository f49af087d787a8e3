package workloads

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// The actions of writes of a workload that are not about its pods.
const (
	actionPreDownload workload.Action = "PreDownload"
	actionReport      workload.Action = "Report"
)

// Parts are what the pass of a kind has beside the revision and the pods. Each is asked for when what comes before it
// is answered, and follows from the observation and these answers alone.
type Parts struct {
	// PreDownload returns the rollout for which nodes pull images ahead.
	PreDownload func() predownload.Rollout
	// Report returns the status.
	Report func() (Report, error)
	// Limit is how many revisions stay besides those that pods have.
	Limit int32
	// Kept are revisions that neither count for the limit nor are deleted by it.
	Kept []*appsv1.ControllerRevision
	// Last returns writes that follow the status; nil for none.
	Last func() []*write.Write
	// Answered is called after each answer to a write, from several goroutines; nil for no call.
	Answered func(w *workload.Write, err error)
}

// parts are the passes that a plan has come to.
type parts struct {
	preDownload *predownload.Pass
	// status writes the report; nil where the status stays the same.
	report Report
	status pass
	others []pass
	failed []error
}

type (
	pass = driver.Pass[*workload.Write]
	step = driver.Step[*workload.Write]
)

// sequence is the whole pass of a workload: the revision, the pull jobs, the pods, the status, and what is not needed
// any more.
func (k *Kit) sequence(o *Observation, p *Plan, of Parts) pass {
	return driver.Sequence(
		step{Plan: func() (pass, error) { return k.store(o, p), nil }, Required: true},
		step{Plan: func() (pass, error) { return k.preDownload(o, p, of), nil }},
		step{Plan: func() (pass, error) { return p.pods(o), nil }},
		step{Plan: func() (pass, error) { return p.report(o, of) }, Required: true},
		step{Plan: func() (pass, error) { return p.trim(o, of), nil }},
	)
}

// as returns a pass of plain writes as a part of the pass of a workload.
func as(action workload.Action, plain driver.Pass[*write.Write]) pass {
	return driver.Lift(plain, func(w *write.Write) *workload.Write {
		return &workload.Write{Write: *w, Action: action}
	})
}

func (*Kit) store(o *Observation, p *Plan) pass {
	if o.IsDeleted() {
		return nil
	}
	return as(workload.ActionStore, p.Store)
}

// preDownload has the nodes pull the images of the update revision. A failure stops nothing else.
func (k *Kit) preDownload(o *Observation, p *Plan, of Parts) pass {
	o.Revisions = p.Store.Stored(o.Revisions)
	if !k.PullJobs || o.IsDeleted() {
		return nil
	}
	jobs, err := predownload.Plan(of.PreDownload())
	if err != nil {
		p.parts.failed = append(p.parts.failed, err)
		return nil
	}
	p.parts.preDownload = jobs.Pass()
	return p.other(as(actionPreDownload, p.parts.preDownload))
}

func (p *Plan) other(part pass) pass {
	p.parts.others = append(p.parts.others, part)
	return part
}

func (p *Plan) pods(o *Observation) pass {
	if p.parts.preDownload != nil {
		o.Revisions = revision.Replace(o.Revisions, p.parts.preDownload.Revision())
	}
	if !p.Runs(o) {
		return nil
	}
	return p.Pass
}

// report returns the write of the status, if the status changed.
func (p *Plan) report(o *Observation, of Parts) (pass, error) {
	p.conclude(o)
	report, err := of.Report()
	if err != nil {
		return nil, err
	}
	p.parts.report = report
	w, err := report.write(o)
	if err != nil || w == nil {
		return nil, err
	}
	p.parts.status = as(actionReport, driver.Writes(w))
	return p.parts.status, nil
}

// trim deletes revisions that are beyond the limit, and that no pod has, and makes the last writes of the kind.
func (p *Plan) trim(o *Observation, of Parts) pass {
	var writes []*write.Write
	if !o.IsDeleted() {
		writes = p.Pass.Trim(of.counted(o.Revisions), of.Limit)
	}
	if of.Last != nil {
		writes = append(writes, of.Last()...)
	}
	return p.other(as(workload.ActionTrim, driver.Writes(writes...)))
}

// counted are the revisions that the limit is about.
func (of *Parts) counted(all []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	if len(of.Kept) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(rev *appsv1.ControllerRevision) bool {
		return slices.ContainsFunc(of.Kept, func(kept *appsv1.ControllerRevision) bool { return kept.UID == rev.UID })
	})
}

// Run makes the pass of a workload, emits its events, and remembers what the next pass needs. The error is that of the
// revision, or of the status.
func (k *Kit) Run(ctx context.Context, o *Observation, p *Plan, of Parts) error {
	err := driver.Run(ctx, k.sequence(o, p, of), driver.Options[*workload.Write]{
		Send: runtimeclient.Sender(k.Client, k.Live), Now: k.Now, Owner: o.Key(), Ledgers: k.Ledgers(),
		Ask: func(ctx context.Context, w *workload.Write) error { return k.options.Ask(ctx, w.Asked) },
		Answered: func(w *workload.Write, answer write.Object, err error) {
			if of.Answered != nil {
				of.Answered(w, err)
			}
			k.emitAnswer(o, p, answered{w, answer, err})
		},
	})
	if failed := p.Store.Err(); failed != nil {
		k.Warningf(o.Object, reasonFailedCreate, "failed to keep the revision: %v", failed)
		return failed
	}
	if p.parts.report.Object == nil {
		return err // there is no status to write
	}
	k.remember(ctx, o, p)
	if p.parts.status != nil {
		return p.parts.status.Err()
	}
	return nil
}

// Note keeps what a workload waits for until its next pass.
func (k *Kit) Note(o *Observation, p *Plan) {
	k.memory.Note(o.Key(), func(known *Known) { known.wait = p.wait })
}

// remember keeps what the next pass needs, and emits what follows from the pass as a whole.
func (k *Kit) remember(ctx context.Context, o *Observation, p *Plan) {
	reported := p.parts.status == nil || p.parts.status.Err() == nil
	k.Note(o, p)
	k.memory.Note(o.Key(), func(known *Known) {
		known.pause = pauseOf(len(o.Active) + len(o.Inactive))
		if reported {
			known.Failures = p.parts.report.failures()
		}
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

// Finish is the result of a pass. unreported is why the status is not written; the controller then retries. Otherwise
// errors follow from the writes, and of a template whose pods cannot be managed only another spec mends them.
func (k *Kit) Finish(request ctrl.Request, p *Plan, unreported error) (ctrl.Result, error) {
	if unreported != nil {
		return k.Result(request, p.After.After(), unreported)
	}
	failed := append([]error{p.ScaleErr, p.UpdateErr}, p.parts.failed...)
	for _, part := range p.parts.others {
		failed = append(failed, part.Err())
	}
	err := errors.Join(failed...)
	if err != nil && p.Invalid != nil {
		err = terminal(err)
	}
	return k.Result(request, p.After.After(), err)
}

// terminal keeps a controller from retrying.
func terminal(err error) error { return reconcile.TerminalError(err) }

// emitPullJob emits the event of the creation of a pull job.
func (k *Kit) emitPullJob(o *Observation, w *workload.Write, err error) {
	job, is := w.Object.(*v1beta1.ImagePullJob)
	switch {
	case !is || w.Verb != write.Create || apierrors.IsAlreadyExists(err):
	case err != nil:
		k.Normalf(o.Object, reasonFailedPullJob, "failed to create ImagePullJob %s: %v", job.Name, err)
	default:
		k.Normalf(o.Object, reasonCreatedPullJob, "created ImagePullJob %s for image %s", job.Name, job.Spec.Image)
	}
}
