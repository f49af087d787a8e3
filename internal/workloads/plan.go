package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/execution"
	"github.com/kruisekit/kruisekit/internal/history"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/predownload"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Plan is what one pass is to do. All of it follows from the observation.
type Plan struct {
	Resolution revision.Resolution
	// Newest makes the template the newest revision.
	Newest history.Change
	// Current and Update are the names of the revisions that pods go from and to.
	Current, Update string
	// Data is the template as a revision stores it.
	Data []byte
	Pass *workload.Pass
	// Invalid is why pods of the template cannot be managed.
	Invalid error

	// What follows is known once the pass is executed.

	ScaleErr, UpdateErr error
	After               requeue.Earliest
	// Waits are what pods wait for that are to be created, once the pass has come to that.
	Waits []note.Note

	wait conditions.Wait
}

// Revision is the template of a workload as its history keeps it.
type Revision struct {
	Template *corev1.PodTemplateSpec
	// Current is the name of the current revision in the status, Collisions the count there.
	Current    string
	Collisions *int32
	// Raised are annotations of a revision that is created, or that is older and becomes the newest.
	Raised map[string]string
	// HashLabel is a label of a new revision that has its hash, beside controller.kubernetes.io/hash; empty for none.
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
	p.Newest, err = history.Plan(history.Wanted{
		Resolution: p.Resolution, Namespace: o.Object.GetNamespace(), Owner: o.ControllerRef(), Data: data,
		Labels: labels, Annotations: maps.Clone(o.Object.GetAnnotations()), RaisedAnnotations: r.Raised,
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

// Revise adopts revisions, and makes the template the newest one. An error that is a *history.TakenError asks for another name: raise the
// collision count of the status.
func (k *Kit) Revise(ctx context.Context, o *Observation, p *Plan) error {
	if o.IsDeleted() {
		return nil
	}
	for _, rev := range o.OrphanRevisions {
		w := o.adopt(rev)
		answer, err := runtimeclient.Send(ctx, k.Client, &w)
		if err != nil && !write.IsOutdated(err) {
			return fmt.Errorf("adopt revision %s: %w", rev.Name, err)
		}
		k.Record(o.Key(), &w, answer, err)
	}
	newest, err := k.History().Ensure(ctx, o.Key(), p.Newest)
	o.Revisions = history.Replace(o.Revisions, newest)
	if err != nil {
		k.Warningf(o.Object, reasonFailedCreate, "failed to keep the revision: %v", err)
	}
	return err
}

// Trim deletes revisions that are beyond the limit, and that no pod has.
func (k *Kit) Trim(ctx context.Context, o *Observation, p *Plan, limit int32) error {
	if o.IsDeleted() {
		return nil
	}
	live := []string{p.Current, p.Update}
	for _, pod := range slices.Concat(p.Pass.Pods(), o.Inactive) {
		live = append(live, pod.Labels[kruise.PodRevisionLabelKey])
	}
	return k.History().Delete(ctx, o.Key(), revision.Trim(o.Revisions, live, limit))
}

// Execute sends the writes of the pass, and emits their events. sent is called after each write, from several goroutines; nil for no call.
func (k *Kit) Execute(ctx context.Context, o *Observation, p *Plan, sent func(w *workload.Write, err error)) {
	if !p.Runs(o) {
		p.ScaleErr = p.Invalid
		return
	}
	execution.Run(ctx, p.Pass, k.Now, execution.Asking(k.options.Ask, func(ctx context.Context, w *workload.Write) (write.Object, error) {
		answer, err := runtimeclient.Send(ctx, k.Client, &w.Write)
		k.Record(o.Key(), &w.Write, answer, err)
		err = k.explainTaken(ctx, o, w, err)
		if sent != nil {
			sent(w, err)
		}
		k.emitWrite(o, w, answer, err)
		return answer, err
	}))
	k.emitWaits(o, p)
	p.After.In(p.Pass.RequeueAfter())
	p.ScaleErr, p.UpdateErr = execution.Errors(p.Pass, func(f workload.Failure) { k.emitImpossible(o, f) })
	outdated, err := execution.Outdated(p.Pass, o.Known.Outdated)
	if err != nil {
		p.UpdateErr = errors.Join(p.UpdateErr, err)
	}
	k.memory.Note(o.Key(), func(known *Known) {
		known.Outdated, known.Repeats, known.rejected = outdated, p.Pass.Repeats(), o.rejected
	})
	if k.options.Explain != nil {
		k.options.Explain(ctx, o.Key(), p.Notes())
	}
}

// explainTaken adds workload.ErrUnobserved to the error of a pod whose name a pod of the workload has: the cache shows an earlier state, as of a
// pod that was deleted a moment ago. A pod that is gone by now was the same.
func (k *Kit) explainTaken(ctx context.Context, o *Observation, w *workload.Write, err error) error {
	if _, isPod := w.Object.(*corev1.Pod); !isPod || w.Verb != write.Create || !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, failed := stored.Metadata(ctx, k.Live, corev1.SchemeGroupVersion.WithKind("Pod"), client.ObjectKeyFromObject(w.Object))
	if failed != nil || live != nil && !owned.Controls(o.Object, live) {
		return err
	}
	return fmt.Errorf("%w: %w", workload.ErrUnobserved, err)
}

// Finish is the result of a pass. Errors follow from the writes, and of a template whose pods cannot be managed only another spec mends them.
func (k *Kit) Finish(request ctrl.Request, p *Plan, others ...error) (ctrl.Result, error) {
	err := errors.Join(p.ScaleErr, p.UpdateErr, errors.Join(others...))
	if err != nil && p.Invalid != nil {
		err = reconcile.TerminalError(err)
	}
	return k.Result(request, p.After.After(), err)
}

// PreDownload has the nodes pull the images of the update revision. Of the rollout, the caller fills in what its spec asks for. A failure
// stops nothing else.
func (k *Kit) PreDownload(ctx context.Context, o *Observation, r predownload.Rollout) error {
	if !k.PullJobs || o.IsDeleted() {
		return nil
	}
	jobs, err := predownload.Plan(r)
	if err != nil {
		return err
	}
	fresh, err := k.Dependents.PreDownload(k.emitPullJob(o)).Execute(ctx, o.Key(), jobs)
	o.Revisions = history.Replace(o.Revisions, fresh)
	return err
}

// Rollout is what every pre-download has.
func (o *Observation) Rollout(p *Plan) predownload.Rollout {
	return predownload.Rollout{
		Namespace: o.Object.GetNamespace(), Owner: o.ControllerRef(), Jobs: o.Jobs, Over: p.Current == p.Update,
		Current: history.Find(o.Revisions, p.Current), Update: history.Find(o.Revisions, p.Update),
	}
}
