package broadcastjob

import (
	"context"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// report writes the status if it changed, in one patch, and announces what changes in the life of the job.
func (p *pass) report(ctx context.Context, status v1beta1.BroadcastJobStatus) error {
	fresh := *p.job
	fresh.Status = status
	answer, err := p.status.Write(ctx, p.job, &fresh, map[string]any{ // lists print all of them
		"desired": status.Desired, "active": status.Active, "succeeded": status.Succeeded, "failed": status.Failed, "phase": status.Phase,
	})
	if err != nil || answer == nil {
		return err
	}
	p.job.ResourceVersion, p.job.Status = answer.GetResourceVersion(), status
	p.emitTurn()
	return nil
}
