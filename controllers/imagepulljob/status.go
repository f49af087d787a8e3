package imagepulljob

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/write"
)

// report writes how far the nodes are, if it changed.
func (p *plan) report() (_ pass, err error) {
	if p.review, err = p.pull.Conclude(); err != nil {
		return nil, err
	}
	return p.writeStatus(p.review.Status, func(answer write.Object) {
		p.job.ResourceVersion = answer.GetResourceVersion()
	})
}

// refuse reports in the status why the job cannot run.
func (p *plan) refuse() (pass, error) {
	status := *p.job.Status.DeepCopy()
	status.Message = "job cannot run: " + p.invalid.Error()
	return p.writeStatus(status, func(write.Object) { p.refused = p.invalid.Error() })
}

func (p *plan) writeStatus(status v1beta1.ImagePullJobStatus, written func(write.Object)) (pass, error) {
	fresh := *p.job
	fresh.Status = status
	return statuspatch.Pass(p.jobs, p.job, &fresh, map[string]any{ // the schema requires one, and lists print all
		"desired": status.Desired, "active": status.Active, "succeeded": status.Succeeded, "failed": status.Failed,
	}, written)
}
