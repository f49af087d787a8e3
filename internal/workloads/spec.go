package workloads

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/failure"
)

// Policy is what workloads change in place and how. Nil is for a daemon that restarts containers for their environment,
// and no resize. Without the daemon, environment variables from labels and annotations stay as they are when these
// change.
func Policy(installed *inplace.Installation) inplace.Policy {
	has := ptr.Deref(installed, inplace.Installation{EnvDaemon: true})
	p := has.Policy()
	if !has.EnvDaemon {
		p.Env = inplace.EnvIgnore
	}
	return p
}

// Judge returns the first of the faults for which the webhook rejects a workload. A fault within unusable paths means
// that nothing is done until the spec changes. Another one is only reported: it has a safe reading, as takeovers find
// stored values that the reference accepts. So has a fault within safe paths, which may lie within unusable ones.
func Judge(faults field.ErrorList, unusable, safe []string) (invalid, reported error) {
	for _, fault := range faults {
		at := func(path string) bool { return strings.HasPrefix(fault.Field, path) }
		switch {
		case at("spec.template.metadata"): // the plan compares the selector with the labels of the pods, which have more
		case slices.ContainsFunc(unusable, at) && !slices.ContainsFunc(safe, at):
			return failure.Brief(fault), nil
		case reported == nil:
			reported = failure.Brief(fault)
		}
	}
	return nil, reported
}
