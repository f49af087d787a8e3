package ephemeraljob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// reasonInvalidSpec is the reason of an event: the spec cannot work. The reference emits none.
const reasonInvalidSpec = "InvalidSpec"

// pass executes what package ephemeral plans.
type pass struct {
	*Reconciler
	*snapshot

	plan *ephemeral.Pass
	mu   sync.Mutex
}

// execute sends the writes of the pass, and returns when to look again. The status is written whatever the other writes met.
func (p *pass) execute(ctx context.Context) (time.Duration, error) {
	failed := p.dropFinalizer(ctx)
	for pods := p.plan.Next(); len(pods) > 0; pods = p.plan.Next() {
		if err := p.addContainers(ctx, pods); err != nil {
			failed = errors.Join(failed, err)
			break
		}
	}
	outcome := p.plan.Conclude()
	p.refused.Note(p.key(), func(known *map[types.UID]ephemeral.Refusal) { *known = outcome.Refused })
	failed = errors.Join(failed, outcome.Err, p.report(ctx, outcome))
	if p.plan.DeleteJob && failed == nil {
		failed = p.jobs.Delete(ctx, p.api.Client, p.job)
	}
	p.emit(ctx, outcome)
	return requeue.Sooner(outcome.RequeueAfter, p.recheckAfter), failed
}

// dropFinalizer removes the finalizer of the reference.
func (p *pass) dropFinalizer(ctx context.Context) error {
	if !p.plan.DropFinalizer {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(p.job.Finalizers), func(f string) bool { return f == v1alpha1.EphemeralJobFinalizerKey })
	answer, err := p.jobs.WriteFinalizers(ctx, p.api.Client, p.job, left)
	if err != nil {
		return err
	}
	p.job.ResourceVersion, p.job.Finalizers = answer.GetResourceVersion(), left
	return nil
}

// addContainers writes pods of their own: what holds one up does not hold up the others. The plan takes the answers; what is returned is none of
// them, but a panic.
func (p *pass) addContainers(ctx context.Context, pods []*corev1.Pod) error {
	_, err := batches.Each(pods, func(pod *corev1.Pod) error {
		answer, err := runtimeclient.Send(ctx, p.api.Client, p.plan.Write(pod))
		changed, isPod := answer.(*corev1.Pod)
		if err == nil && !isPod {
			err = fmt.Errorf("the answer is %T", answer)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.pods.Patched(p.key(), changed)
		}
		p.plan.Answer(ephemeral.Answer{Pod: pod, Err: err})
		if write.IsRefused(err) {
			return nil
		}
		return err
	})
	var panicked *batches.PanicError
	if errors.As(err, &panicked) {
		return err
	}
	return nil
}

// report writes the status if it changed, in one patch, and announces the end of the job.
func (p *pass) report(ctx context.Context, outcome ephemeral.Outcome) error {
	fresh, status := *p.job, outcome.Status
	fresh.Status = status
	answer, err := p.status.Write(ctx, p.job, &fresh, map[string]any{ // lists print all of them
		"phase": status.Phase, "match": status.Matches, "running": status.Running, "succeeded": status.Succeeded, "waiting": status.Waiting,
		"failed": status.Failed,
	})
	if err != nil || answer == nil {
		return err
	}
	p.job.ResourceVersion, p.job.Status = answer.GetResourceVersion(), status
	switch turn := outcome.Turn; {
	case turn == nil:
	case turn.Level == note.Blocked:
		p.api.Warningf(p.job, turn.Code, "%s", turn.Text)
	default:
		p.api.Normalf(p.job, turn.Code, "%s", turn.Text)
	}
	return nil
}

// emit announces refusals, each pod once, and passes the notes on.
func (p *pass) emit(ctx context.Context, outcome ephemeral.Outcome) {
	if all := outcome.NewlyRefused; len(all) > 0 {
		slices.SortFunc(all, func(a, b note.Note) int { return cmp.Compare(a.Object, b.Object) })
		text := fmt.Sprintf("Error adding containers to pod %s: %s", all[0].Object, all[0].Text)
		if more := len(all) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more pods)", more)
		}
		p.api.Warningf(p.job, ephemeral.NoteRefused, "%s", text)
	}
	invalid := ""
	for _, n := range p.plan.Notes {
		if n.Code == ephemeral.NoteInvalid {
			invalid = n.Text
		}
	}
	if p.emitted.Changed(p.key(), invalid) {
		p.api.Warningf(p.job, reasonInvalidSpec, "%s", invalid)
	}
	binding.LogNotes(ctx, p.plan.Notes)
	if p.options.Explain != nil {
		p.options.Explain(ctx, p.key(), p.plan.Notes)
	}
}
