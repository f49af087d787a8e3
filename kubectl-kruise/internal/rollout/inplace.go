package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controller "github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
)

// inPlaceStatus reads the status that the reconciler reports of a set of apps/v1. The status may be that of an older
// template: the counts of the built-in controller must show the end, too.
func inPlaceStatus(o *unstructured.Unstructured) (string, bool, error) {
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if observed < o.GetGeneration() {
		return fmt.Sprintf("Waiting for %s spec update to be observed...\n", o.GetKind()), false, nil
	}
	p := kinds.Progress(o)
	if p == nil {
		return fmt.Sprintf("Waiting for the status of %s %s to be reported...\n", o.GetKind(), o.GetName()), false, nil
	}
	state := string(p.State)
	if kinds.IsHeld(o) {
		state += ", held"
	}
	line := fmt.Sprintf("%s: %d of %d pods updated: %d in place, %d recreated; %d in progress, %d waiting", state,
		p.Updated, p.Pods, p.InPlace, p.Recreated, p.InProgress, p.Waiting)
	if p.Note != "" {
		line += "; " + p.Note
	}
	return line + "\n", isComplete(o, p), nil
}

func isComplete(o *unstructured.Unstructured, p *controller.Progress) bool {
	replicas, updated := int64(1), "updatedReplicas"
	if n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); found {
		replicas = n
	}
	if o.GetKind() == kinds.DaemonSet {
		replicas, _, _ = unstructured.NestedInt64(o.Object, "status", "desiredNumberScheduled")
		updated = "updatedNumberScheduled"
	}
	counted, _, _ := unstructured.NestedInt64(o.Object, "status", updated)
	kept := min(max(int64(kinds.RolloutOf(o).Partition), 0), replicas)
	switch {
	case kinds.IsHeld(o): // which lasts while a partition keeps pods
		return kept > 0 && p.State == controller.StateProgressing && p.Waiting == 0 && p.InProgress == 0 &&
			p.Ready == p.Pods && int64(p.Updated) >= replicas-kept
	default:
		return p.State == controller.StateComplete && counted >= replicas-kept
	}
}
