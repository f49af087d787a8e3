package scope

import "github.com/kruisekit/kruisekit/api/kruise"

const (
	// gated holds for pods that have the readiness gate already.
	gated = `(has(object.spec.readinessGates) && object.spec.readinessGates.exists(g, g.conditionType == '` +
		string(kruise.KruisePodReadyConditionType) + `'))`

	// owned holds for pods of controllers of the group apps.kruise.io that lack the gate.
	owned = `(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, ` +
		`has(o.controller) && o.controller && o.apiVersion.startsWith('apps.kruise.io/')) && !` + gated + `)`
)

// Readiness is the source of the step that adds the gate KruisePodReady: to pods of controllers of the group
// apps.kruise.io, or to all. No pod that lacks the gate is created while no replica answers.
func Readiness(all bool) Source {
	if all {
		return conditional("readiness", Condition{Expression: "!" + gated})
	}
	return conditional("readiness", Condition{Expression: owned})
}
