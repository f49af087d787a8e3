package imagepulljob

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

// reasonInvalidSpec is the event of a job that cannot run.
const reasonInvalidSpec = "InvalidSpec"

// emit emits why a job cannot run, and passes the notes on. Each note that a user has to mend is an event, once in the
// life of a process.
func (r *Reconciler) emit(ctx context.Context, p *plan) {
	if p.refused != "" {
		r.api.Event(p.job, corev1.EventTypeWarning, reasonInvalidSpec, p.refused)
	}
	if !p.reported {
		return
	}
	for _, n := range p.notes {
		if imagepull.NeedsUser(n) && r.emitted.First(p.key(), n.Code+" "+n.Object) {
			r.api.Event(p.job, corev1.EventTypeWarning, n.Code, n.Object+": "+n.Text)
		}
	}
	if r.options.Explain != nil {
		r.options.Explain(ctx, p.key(), p.notes)
	}
}
