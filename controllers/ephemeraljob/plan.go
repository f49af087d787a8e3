package ephemeraljob

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/controllers/ephemeraljob/ephemeral"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass is to do: the containers that package ephemeral adds, and the writes of the job itself.
type plan struct {
	*snapshot

	jobs     stored.Kind
	decision *ephemeral.Pass
	all      pass

	// What follows is known once the writes are answered.

	// current is the job as the last answer left it.
	current *ephemeralJob
	outcome ephemeral.Outcome
	// reported reports whether the status was written.
	reported bool
}

func newPlan(s *snapshot, jobs stored.Kind) *plan {
	p := &plan{snapshot: s, jobs: jobs, decision: ephemeral.Plan(s.input), current: s.job}
	p.all = driver.Sequence(
		step{Plan: p.dropFinalizer},
		step{Plan: func() (pass, error) { return p.decision, nil }},
		step{Plan: p.report},
		step{Plan: p.deleteJob},
	)
	return p
}

func (p *plan) after() time.Duration {
	return requeue.Sooner(p.decision.RequeueAfter(), p.recheckAfter)
}

// dropFinalizer removes the finalizer of the reference.
func (p *plan) dropFinalizer() (pass, error) {
	if !p.decision.DropFinalizer {
		return nil, nil
	}
	left := slices.DeleteFunc(slices.Clone(p.job.Finalizers), func(f string) bool {
		return f == v1alpha1.EphemeralJobFinalizerKey
	})
	w, err := p.jobs.Finalizers(p.job, left)
	if err != nil {
		return nil, err
	}
	return driver.Stage([]*write.Write{w}, func(_ *write.Write, answer write.Object, err error) ([]*write.Write, error) {
		if err != nil {
			return nil, fmt.Errorf("write finalizers: %w", err)
		}
		fresh := *p.current
		fresh.ResourceVersion, fresh.Finalizers = answer.GetResourceVersion(), left
		p.current = &fresh
		return nil, nil
	}), nil
}

// report writes the status if it changed, whatever the other writes met.
func (p *plan) report() (pass, error) {
	p.outcome = p.decision.Conclude()
	fresh, status := *p.current, p.outcome.Status
	fresh.Status = status
	return statuspatch.Pass(p.jobs, p.current, &fresh, map[string]any{ // lists print all of them
		"phase": status.Phase, "match": status.Matches, "running": status.Running, "succeeded": status.Succeeded,
		"waiting": status.Waiting, "failed": status.Failed,
	}, func(answer write.Object) {
		fresh.ResourceVersion = answer.GetResourceVersion()
		p.current, p.reported = &fresh, true
	})
}

// deleteJob deletes a job whose time has come, unless the job has changed or another write failed.
func (p *plan) deleteJob() (pass, error) {
	if !p.decision.DeleteJob || p.all.Err() != nil {
		return nil, nil //nolint:nilerr // the pass has the errors of the steps before
	}
	w := p.jobs.Deletion(p.current)
	w.SameVersion = true
	return driver.Stage([]*write.Write{w}, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete EphemeralJob: %w", err)
		}
		return nil, nil
	}), nil
}
