package imagepulljob

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

// reasonInvalidSpec is the event of a job that cannot run.
const reasonInvalidSpec = "InvalidSpec"

// emit passes the notes on. Each note that a user has to mend is an event, once in the life of a process.
func (r *Reconciler) emit(ctx context.Context, s *snapshot, plan imagepull.JobPlan) {
	for _, n := range plan.Notes {
		if imagepull.NeedsUser(n) && r.emitted.First(s.key(), n.Code+" "+n.Object) {
			r.api.Event(s.job, corev1.EventTypeWarning, n.Code, n.Object+": "+n.Text)
		}
	}
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), plan.Notes)
	}
}
