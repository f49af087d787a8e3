package daemonset

import (
	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// invalid returns the first faults for which the webhook rejects a set. With an unusable set nothing is done until its
// spec changes. A fault that is only reported has a safe reading: takeovers find stored values that the reference
// accepts.
func invalid(set *v1beta1.DaemonSet) (unusable, reported error) {
	return workloads.Judge(validation.DaemonSet(set), []string{"spec.selector", "spec.template"}, nil)
}
