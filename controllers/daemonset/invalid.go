package daemonset

import (
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/validation"
)

// invalid returns the first faults for which the webhook rejects a set. With an unusable set nothing is done until its spec
// changes. A fault that is only reported has a safe reading: takeovers find stored values that the reference accepts.
func invalid(set *v1beta1.DaemonSet) (unusable, reported error) {
	for _, fault := range validation.DaemonSet(set) {
		at := func(path string) bool { return strings.HasPrefix(fault.Field, path) }
		switch {
		case at("spec.template.metadata"): // the plan compares the selector with the labels of the pods, which have more
		case slices.ContainsFunc([]string{"spec.selector", "spec.template"}, at):
			return failure.Brief(fault), nil
		case reported == nil:
			reported = failure.Brief(fault)
		}
	}
	return nil, reported
}
