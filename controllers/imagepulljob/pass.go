package imagepulljob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// reasonInvalidSpec is the event of a job that cannot run.
const reasonInvalidSpec = "InvalidSpec"

// pass executes what package imagepull plans. What follows from the answers is planned there, too.
type pass struct {
	*Reconciler
	*snapshot

	plan imagepull.Pass
	// notes on secrets.
	notes []note.Note
}

func (r *Reconciler) pass(s *snapshot) *pass {
	request := imagepull.Request{Job: s.job, Now: s.now, KeepSeconds: r.options.KeepSeconds}
	return &pass{Reconciler: r, snapshot: s, plan: imagepull.Pass{Request: request, Nodes: s.nodes}}
}

// advance asks nodes to pull, and reports how far they are. What failed does not keep the rest from being reported.
func (p *pass) advance(ctx context.Context) (time.Duration, error) {
	failed := p.claim(ctx)
	if failed == nil {
		failed = p.askNodes(ctx)
	}
	plan, err := p.plan.Conclude()
	if err != nil {
		return 0, errors.Join(failed, err)
	}
	if err := p.writeStatus(ctx, plan.Status); err != nil {
		return 0, errors.Join(failed, err)
	}
	p.emit(ctx, append(p.notes, plan.Notes...))
	if failed == nil && p.ended() {
		return p.end(ctx)
	}
	return plan.RequeueAfter, failed
}

// claim brings the pull secrets of the job to where nodes may read them. The finalizer comes first, so that they are
// released.
func (p *pass) claim(ctx context.Context) error {
	if len(p.job.Spec.PullSecrets) == 0 && !p.isHeld() {
		return nil
	}
	if p.job.Namespace != p.options.SecretNamespace && !p.isHeld() {
		if err := p.writeFinalizers(ctx,
			append(slices.Clone(p.job.Finalizers), v1beta1.ImagePullJobFinalizerKey)); err != nil {
			return err
		}
	}
	claimed, err := p.secrets.Claim(ctx, p.job)
	p.plan.Request.Secrets, p.notes = claimed.References, claimed.Notes
	if apierrors.IsNotFound(err) || write.IsFinal(err) { // it stays until a user mends it
		p.plan.RefuseSecrets(p.options.SecretNamespace, err)
	}
	return err
}

// askNodes asks as many nodes as may pull at once.
func (p *pass) askNodes(ctx context.Context) error {
	var refusal error
	for {
		names, err := p.plan.Next()
		if err != nil || len(names) == 0 {
			return errors.Join(refusal, err)
		}
		outcomes, err := p.askAll(ctx, names)
		if refused := p.plan.Answer(outcomes); refusal == nil {
			refusal = refused
		}
		if err != nil {
			return errors.Join(refusal, err)
		}
	}
}

// askAll writes to NodeImages, and returns what became of those that were answered.
func (p *pass) askAll(ctx context.Context, names []string) (map[string]imagepull.Outcome, error) {
	var mu sync.Mutex
	outcomes := make(map[string]imagepull.Outcome, len(names))
	_, err := batches.Each(names, func(name string) error {
		node, err := p.nodeImages.Write(ctx, types.NamespacedName{Name: name}, func(node *nodeImage) (*nodeImage, error) {
			changed, err := p.plan.Request.For(name).Apply(node)
			if errors.Is(err, imagepull.ErrFull) {
				return nil, nil // the next review notes it
			}
			return changed, err
		})
		outcome := imagepull.Outcome{Node: node}
		if write.IsFinal(err) {
			outcome.Refusal, err = fmt.Errorf("update NodeImage %s: %w", name, err), nil
		}
		if err != nil {
			return fmt.Errorf("update NodeImage %s: %w", name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[name] = outcome
		return nil
	})
	return outcomes, err
}

// emit passes the notes on. Each that a user has to mend is an event, once in the life of a process.
func (p *pass) emit(ctx context.Context, notes []note.Note) {
	for _, n := range notes {
		if imagepull.NeedsUser(n) && p.emitted.First(p.key(), n.Code+" "+n.Object) {
			p.api.Event(p.job, corev1.EventTypeWarning, n.Code, n.Object+": "+n.Text)
		}
	}
	if p.options.Explain != nil {
		p.options.Explain(ctx, p.key(), notes)
	}
}

// refuse reports in the status and in an event why the job cannot run.
func (p *pass) refuse(ctx context.Context) error {
	status := *p.job.Status.DeepCopy()
	status.Message = "job cannot run: " + p.invalid.Error()
	if status.Message == p.job.Status.Message {
		return nil
	}
	if err := p.writeStatus(ctx, status); err != nil {
		return err
	}
	p.api.Event(p.job, corev1.EventTypeWarning, reasonInvalidSpec, p.invalid.Error())
	return nil
}

func (p *pass) writeStatus(ctx context.Context, status v1beta1.ImagePullJobStatus) error {
	fresh := *p.job
	fresh.Status = status
	answer, err := p.status.Write(ctx, p.job, &fresh, map[string]any{ // the schema requires one, and lists print all
		"desired": status.Desired, "active": status.Active, "succeeded": status.Succeeded, "failed": status.Failed,
	})
	if err != nil {
		return err
	}
	if answer != nil {
		p.job.ResourceVersion = answer.GetResourceVersion()
	}
	p.job.Status = status
	return nil
}

func (p *pass) isHeld() bool {
	return slices.Contains(p.job.Finalizers, v1beta1.ImagePullJobFinalizerKey)
}

// writeFinalizers writes all of them, unless the job has changed.
func (p *pass) writeFinalizers(ctx context.Context, all []string) error {
	answer, err := p.jobs.WriteFinalizers(ctx, p.api.Client, p.job, all)
	if err == nil {
		p.job.Finalizers, p.job.ResourceVersion = all, answer.GetResourceVersion()
	}
	return err
}

// end releases what an ended job holds, and deletes the job when its time has come.
func (p *pass) end(ctx context.Context) (time.Duration, error) {
	if err := p.secrets.Release(ctx, p.job); err != nil {
		return 0, err
	}
	if p.options.WatchSecrets { // the poll forgets by itself
		for _, name := range p.job.Spec.PullSecrets {
			p.secrets.Touched(types.NamespacedName{Namespace: p.job.Namespace, Name: name})
		}
	}
	if p.isHeld() {
		rest := slices.DeleteFunc(slices.Clone(p.job.Finalizers), func(f string) bool {
			return f == v1beta1.ImagePullJobFinalizerKey
		})
		if err := p.writeFinalizers(ctx, rest); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
	}
	if p.job.DeletionTimestamp != nil {
		return 0, nil
	}
	plan, err := p.plan.Conclude()
	if err != nil || !plan.Delete {
		return max(plan.RequeueAfter, 0), err
	}
	gone := p.jobs.Named(p.key())
	gone.SetUID(p.job.UID)
	if err := p.api.Client.Delete(ctx, gone, client.Preconditions{UID: &p.job.UID}); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("delete finished job: %w", err)
	}
	p.jobs.Writes.Deleted(p.key(), gone)
	return 0, nil
}
