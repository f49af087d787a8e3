package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// The template annotation and the environment variable that make a new revision.
const (
	restartedAt    = "kubectl.kubernetes.io/restartedAt"
	restartedAtEnv = "RESTARTED_AT"
)

func restartOps(now clock.PassiveClock) decide {
	return func(o *unstructured.Unstructured) ([]write.Op, string, error) {
		ops, err := Restart(o, now.Now())
		return ops, "", err
	}
}

// Restart returns the operations that roll the pods of a workload once.
//
// A workload that recreates its pods gets an annotation in the template. One that updates in place would write that
// annotation into running pods and restart nothing: its containers get an environment variable, which no running
// container can take. With InPlaceOnly the rollout could not go on, so that is an error.
//
// A set of apps/v1 gets the annotation, for which its pods are recreated also where it is rolled out in place.
func Restart(o *unstructured.Unstructured, now time.Time) ([]write.Op, error) {
	if kinds.IsNative(o) {
		return restartNative(o, now)
	}
	strategy, is, err := kinds.StrategyOf(o)
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, errors.New("restarting is not supported")
	}
	at, value := kinds.TemplatePath(o), now.UTC().Format(time.RFC3339)
	switch strategy.Policy {
	case kinds.Recreate:
		return annotateRestart(o, now), nil
	case kinds.InPlaceOnly:
		return nil, fmt.Errorf("updates its pods in place only: use kubectl kruise restart %s/%s",
			strings.ToLower(o.GetKind()), o.GetName())
	}
	containers, err := kinds.Containers(o, "containers")
	if err != nil {
		return nil, err
	}
	ops := target.Unchanged(o)
	for i, c := range containers {
		ops = append(ops, setEnv(append(at, "spec", "containers", fmt.Sprint(i)), c, value)...)
	}
	return ops, nil
}

// annotateRestart returns the operations that write the annotation of restarts into the template.
func annotateRestart(o *unstructured.Unstructured, now time.Time) []write.Op {
	at := append(kinds.TemplatePath(o), "metadata", "annotations", restartedAt)
	return append(target.Unchanged(o), target.Set(o, now.UTC().Format(time.RFC3339), at...)...)
}

// restartNative refuses what kubectl refuses: a Deployment that its user has paused. The hold of a Deployment ends with
// the restart.
func restartNative(o *unstructured.Unstructured, now time.Time) ([]write.Op, error) {
	if kinds.SpecPaused(o) && !kinds.IsHeld(o) {
		return nil, errors.New("can't restart paused deployment (run rollout resume first)")
	}
	return annotateRestart(o, now), nil
}

// setEnv returns the operations that set the variable of restarts in a container at a path.
func setEnv(at []string, c corev1.Container, value string) []write.Op {
	variable := map[string]any{"name": restartedAtEnv, "value": value}
	ops := []write.Op{write.Test(write.Pointer(append(at, "name")...), c.Name)}
	for i, e := range c.Env {
		if e.Name == restartedAtEnv {
			return append(ops, write.Replace(write.Pointer(append(at, "env", fmt.Sprint(i))...), variable))
		}
	}
	if c.Env == nil {
		return append(ops, write.Add(write.Pointer(append(at, "env")...), []any{variable}))
	}
	return append(ops, write.Add(write.Pointer(append(at, "env", "-")...), variable))
}
