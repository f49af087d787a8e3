package uniteddeployment

import (
	"errors"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets/applied"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
)

// report writes the status, if it changed, also where a write failed.
func (p *plan) report() (pass, error) {
	status := p.status()
	fresh := p.object.DeepCopy()
	fresh.Status = status
	return statuspatch.Pass(p.objects, p.object, fresh, map[string]any{ // the schema requires them
		"replicas": status.Replicas, "updatedReplicas": status.UpdatedReplicas, "currentRevision": status.CurrentRevision,
	}, nil)
}

// status follows from what became of the writes. What the object waits for is kept for the next pass.
func (p *plan) status() v1beta1.UnitedDeploymentStatus {
	if p.invalid != nil {
		p.outcome.Fault = p.invalid
		return subsets.Unusable(p.object, p.invalid, p.now)
	}
	p.conclude()
	status := p.Status(p.decision, p.outcome)
	if p.decision != nil {
		wait, after := p.Stall(p.decision, &status)
		p.recheckAfter = requeue.Sooner(p.recheckAfter, after)
		p.Known.Wait = wait
	}
	return status
}

// conclude sums up what became of the writes, and what the next pass is to know of them.
func (p *plan) conclude() {
	if p.decision == nil {
		return
	}
	p.outcome = subsets.Outcome{Revise: p.decision.Store.Err(), Fault: p.decision.Fault()}
	if p.labels != nil {
		p.outcome.Provision = p.labels.Err()
	}
	if !p.executed {
		return
	}
	p.outcome.Provision = errors.Join(p.creates.Err(), p.deletes.Err())
	p.outcome.Update = p.updates.Err()
	p.Known.Labelled = p.decision.Labelled()
	writes := map[string]applied.Write{}
	for _, subset := range p.object.Spec.Topology.Subsets {
		if last, known := p.Known.Writes[subset.Name]; known {
			writes[subset.Name] = last
		}
		if last, known := p.written[subset.Name]; known {
			writes[subset.Name] = last
		}
	}
	p.Known.Writes = writes
}
