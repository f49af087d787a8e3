package rollout

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/workload/native"
	"github.com/kruisekit/kruisekit/write"
)

// Pause returns the operations that pause or resume an object: none where it is paused or not already.
func Pause(o *unstructured.Unstructured, paused bool) ([]write.Op, error) {
	at := kinds.PausePath(o.GroupVersionKind())
	switch {
	case kinds.IsInPlace(o):
		return pauseInPlace(o, paused)
	case at == nil && paused:
		return nil, errors.New("pausing is not supported")
	case at == nil:
		return nil, errors.New("resuming is not supported")
	case kinds.Paused(o) == paused:
		return nil, nil
	}
	return target.Set(o, paused, at...), nil
}

// pauseInPlace pauses a rollout in place by the field of its annotation. A user who has set spec.paused resumes that.
func pauseInPlace(o *unstructured.Unstructured, paused bool) ([]write.Op, error) {
	switch {
	case kinds.Paused(o) != paused:
	case !paused && kinds.SpecPaused(o) && !kinds.IsHeld(o):
		return append(target.Unchanged(o), target.Set(o, false, "spec", "paused")...), nil
	default:
		return nil, nil
	}
	fields := map[string]json.RawMessage{}
	if text, asks := native.Request(o, nil); asks {
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			return nil, fmt.Errorf("has an invalid annotation %s: %w", native.RolloutKey, err)
		}
	}
	delete(fields, "paused")
	if paused {
		fields["paused"] = json.RawMessage("true")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	value := string(text)
	return append([]write.Op{write.TestAnnotation(o, native.RolloutKey)},
		write.SetAnnotations(o, map[string]*string{native.RolloutKey: &value})...), nil
}

func pauseOps(o *unstructured.Unstructured) ([]write.Op, string, error) {
	ops, err := Pause(o, true)
	return ops, "", err
}

func resumeOps(o *unstructured.Unstructured) ([]write.Op, string, error) {
	ops, err := Pause(o, false)
	return ops, "", err
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
