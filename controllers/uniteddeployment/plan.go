package uniteddeployment

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about an object now: what package subsets decides, as writes.
type plan struct {
	*snapshot

	// decision is nil for a spec of which nothing can be decided.
	decision *subsets.Decision

	// What follows is known once the writes are answered.

	// executed reports whether the workloads were written.
	executed         bool
	created, deleted int
	outcome          subsets.Outcome
}

// newPlan reads nothing but the snapshot.
func newPlan(s *snapshot) *plan {
	p := &plan{snapshot: s}
	if s.invalid != nil {
		p.outcome.Fault = s.invalid
		return p
	}
	if p.decision, p.outcome.Revise = subsets.Plan(s.Snapshot); p.decision != nil {
		p.outcome.Fault = p.decision.Fault()
		p.recheckAfter = passes.Sooner(p.recheckAfter, p.decision.RecheckAfter)
	}
	return p
}

// needsObject reports whether the plan does harm where the cache shows an older object: the user may have added the
// subset of a surplus workload since, or scaled out.
func (p *plan) needsObject() bool {
	d := p.decision
	return d != nil && len(d.Deletes)+len(d.Updates)+len(d.Evictions) > 0
}

// labels returns the writes of which pods are reserved.
func (p *plan) labels() []*write.Write {
	var writes []*write.Write
	for _, l := range p.decision.Labels {
		name := types.NamespacedName{Namespace: l.Pod.Namespace, Name: l.Pod.Name}
		writes = append(writes, &write.Write{
			Verb: write.Patch, Object: stored.MetadataOf(corev1.SchemeGroupVersion.WithKind("Pod"), name),
			Type: types.StrategicMergePatchType, Body: write.Fields{"metadata": map[string]any{
				"uid": l.Pod.UID, "labels": map[string]string{kruise.UnitedDeploymentReservedPodKey: l.Value()},
			}},
		})
	}
	return writes
}

// deletions returns the writes that delete the workloads that no subset has.
func (p *plan) deletions() []*write.Write {
	var writes []*write.Write
	for _, c := range p.decision.Deletes {
		w := stored.Kind{GVK: c.Kind}.Deletion(c.Object)
		w.Propagation = metav1.DeletePropagationBackground
		writes = append(writes, w)
	}
	return writes
}

// trimmed returns the writes that delete the revisions beyond the limit.
func (p *plan) trimmed() []*write.Write {
	live := []string{p.decision.Current, p.decision.Update}
	for _, child := range p.Children {
		live = append(live, child.Revision)
	}
	return write.Deletions(revision.Trim(p.decision.Store.Stored(p.Revisions), live, *p.Object.Spec.RevisionHistoryLimit))
}

// status follows from what became of the writes.
func (p *plan) status() v1beta1.UnitedDeploymentStatus {
	if p.invalid != nil {
		return p.Unusable(p.invalid)
	}
	return p.Status(p.decision, p.outcome)
}
