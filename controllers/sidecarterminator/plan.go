package sidecarterminator

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/write"
)

// plan is the next step of a pod.
type plan struct {
	finish.Action

	in finish.Input
	// over reports that nothing is left to do in this pass.
	over bool
}

func newPlan(in finish.Input) *plan { return &plan{Action: finish.Next(in), in: in} }

// pass is all that is written. An error leaves the rest to the next pass.
func (p *plan) pass() driver.Pass[*write.Write] {
	var steps []driver.Step[*write.Write]
	for _, w := range p.Writes(p.in) {
		var answered func(write.Object, error) error
		if w.Verb == write.Create {
			answered = p.created
		}
		steps = append(steps, driver.Then(describe(w), func() (*write.Write, error) {
			if p.over {
				return nil, nil
			}
			return w, nil
		}, answered))
	}
	return driver.Sequence(steps...)
}

// created takes the answer to the creation of a request. By the time of the next pass nothing stands between the plan
// and the cache.
func (p *plan) created(_ write.Object, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err): // the cache did not show it yet
		p.over = true
		return nil
	case err == nil:
		p.RequeueAfter = patience
	}
	return err
}

// describe names a write in errors.
func describe(w *write.Write) string {
	switch {
	case w.Verb == write.Create:
		return "create request"
	case w.Verb == write.Delete:
		return "delete request"
	case w.Subresource == write.Status:
		return "write status of pod"
	}
	return "write images of pod"
}
