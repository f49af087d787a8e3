package rollout

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/write"
)

// workloadOf returns the workload that a Rollout names.
func workloadOf(c target.Command, o target.Object) (target.Object, error) {
	kind, name, err := WorkloadRef(o.Unstructured)
	if err != nil {
		return target.Object{}, err
	}
	workload, err := c.Get(kind.GroupKind(), o.GetNamespace(), name)
	if err != nil {
		return target.Object{}, fmt.Errorf("read the workload of rollout %s: %w", o.GetName(), err)
	}
	return workload, nil
}

// WorkloadRef returns the kind and the name of the workload that a Rollout names.
func WorkloadRef(o *unstructured.Unstructured) (schema.GroupVersionKind, string, error) {
	for _, at := range [][]string{{"spec", "workloadRef"}, {"spec", "objectRef", "workloadRef"}} {
		ref, found, err := unstructured.NestedStringMap(o.Object, at...)
		if found && err == nil {
			return schema.FromAPIVersionAndKind(ref["apiVersion"], ref["kind"]), ref["name"], nil
		}
	}
	return schema.GroupVersionKind{}, "", fmt.Errorf("rollout %s names no workload", o.GetName())
}

func fastUndo(c target.Command, o target.Object) error {
	ops, err := FastUndo(o.Unstructured)
	if err != nil {
		return fmt.Errorf("rollout %q %w", o.GetName(), err)
	}
	patched, err := c.Patch(o, ops, "status")
	if err != nil {
		return err
	}
	return c.Print(patched, "rolled back")
}

// FastUndo returns the operations for the status of a Rollout that take it back to an earlier step: of those without
// traffic, the one with most replicas.
func FastUndo(o *unstructured.Unstructured) ([]write.Op, error) {
	for field, strategy := range map[string]string{canary: "canary", blueGreen: "blueGreen"} {
		status, found, err := unstructured.NestedMap(o.Object, "status", field)
		if !found || err != nil {
			continue
		}
		current, _, _ := unstructured.NestedInt64(status, "currentStepIndex")
		if current <= 1 {
			return nil, errors.New("is already at the first step")
		}
		steps, _, err := unstructured.NestedSlice(o.Object, "spec", "strategy", strategy, "steps")
		if err != nil {
			return nil, err
		}
		best, most := 0, -1
		for i, step := range steps[:min(int(current)-1, len(steps))] {
			if n := replicasWithoutTraffic(step); n > most {
				best, most = i+1, n
			}
		}
		if best == 0 {
			return nil, errors.New("has no earlier step without traffic")
		}
		return []write.Op{
			write.Test(write.Pointer("status", field, "currentStepIndex"), current),
			write.Add(write.Pointer("status", field, "nextStepIndex"), best),
		}, nil
	}
	return nil, errors.New("has no canary and no blue-green status")
}

// replicasWithoutTraffic returns the replicas of a step of 100: -1 for a step that has traffic.
func replicasWithoutTraffic(step any) int {
	fields, ok := step.(map[string]any)
	if !ok || fields["traffic"] != nil || fields["matches"] != nil {
		return -1
	}
	replicas := intstr.Parse(fmt.Sprint(fields["replicas"]))
	n, err := intstr.GetScaledValueFromIntOrPercent(&replicas, 100, true)
	if err != nil {
		return -1
	}
	return n
}
