package rollout

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// Pause returns the operations that pause or resume an object: none where it is paused or not already. It reports
// whether the kind can be paused at all.
func Pause(o *unstructured.Unstructured, paused bool) (ops []write.Op, supported bool) {
	at := kinds.PausePath(o.GroupVersionKind())
	switch {
	case at == nil:
		return nil, false
	case kinds.Paused(o) == paused:
		return nil, true
	}
	return target.Set(o, paused, at...), true
}

func pauseOps(o *unstructured.Unstructured) ([]write.Op, string, error) {
	ops, supported := Pause(o, true)
	if !supported {
		return nil, "", errors.New("pausing is not supported")
	}
	return ops, "", nil
}

func resumeOps(o *unstructured.Unstructured) ([]write.Op, string, error) {
	ops, supported := Pause(o, false)
	if !supported {
		return nil, "", errors.New("resuming is not supported")
	}
	return ops, "", nil
}

func alreadyPaused(*unstructured.Unstructured) error { return errors.New("is already paused") }

func notPaused(*unstructured.Unstructured) error { return errors.New("is not paused") }

// The statuses of a Rollout that hold its current step.
const (
	canary    = "canaryStatus"
	blueGreen = "blueGreenStatus"
)

// Approve returns the operations for the status of a Rollout that end the pause of its current step.
func Approve(o *unstructured.Unstructured) ([]write.Op, error) {
	if o.GroupVersionKind().Group != kinds.Rollouts {
		return nil, errors.New("approving is not supported")
	}
	for _, field := range []string{canary, blueGreen} {
		if _, found, err := unstructured.NestedMap(o.Object, "status", field); !found || err != nil {
			continue
		}
		at := []string{"status", field, "currentStepState"}
		state, _, _ := unstructured.NestedString(o.Object, at...)
		if state != "StepPaused" {
			return nil, errors.New("does not allow to approve, because current canary step state is not in paused")
		}
		return []write.Op{
			write.Test(write.Pointer(at...), state), write.Replace(write.Pointer(at...), "StepReady"),
		}, nil
	}
	return nil, errors.New("no need to approve, because current canary step state is not in canary")
}
