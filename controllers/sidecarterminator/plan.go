package sidecarterminator

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/internal/serial"
	"github.com/kruisekit/kruisekit/write"
)

// plan is the next step of a pod.
type plan struct {
	finish.Action

	in finish.Input
}

func newPlan(in finish.Input) *plan { return &plan{Action: finish.Next(in), in: in} }

// pass is all that is written. An error leaves the rest to the next pass.
func (p *plan) pass() *serial.Writes {
	var steps []serial.Step
	for _, w := range p.Writes(p.in) {
		step := serial.Step{Doing: describe(w), Plan: func() (*write.Write, error) { return w, nil }}
		if w.Verb == write.Create {
			step.Answered = p.created
		}
		steps = append(steps, step)
	}
	return serial.Pass(steps...)
}

// created takes the answer to the creation of a request. By the time of the next pass nothing stands between the plan
// and the cache.
func (p *plan) created(_ write.Object, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err): // the cache did not show it yet
		return serial.ErrStop
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
