package statefulset

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// maxReplicas bounds the pods and claims of one set. A pass holds the name of each.
const maxReplicas = 100_000

// invalid returns the first faults for which the webhook rejects a set. With an unusable set nothing is done until its
// spec changes. A fault that is only reported has a safe reading.
func invalid(set *v1beta1.StatefulSet) (unusable, reported error) {
	replicas, each := ptr.Deref(set.Spec.Replicas, 1), int64(1+len(set.Spec.VolumeClaimTemplates))
	if limit := maxReplicas / each; int64(replicas) > limit {
		return fmt.Errorf("spec.replicas: Invalid value: %d: must be at most %d", replicas, limit), nil
	}
	return workloads.Judge(
		validation.StatefulSet(set),
		[]string{"spec.replicas", "spec.selector", "spec.template", "spec.reserveOrdinals"},
		[]string{"spec.template.spec.readinessGates"},
	)
}
