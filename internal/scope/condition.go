package scope

import "github.com/kruisekit/kruisekit/api/kruise"

const (
	// ordered holds for pods of several containers that ask for a launch order. A pod without containers has null there,
	// which the API server rejects later.
	ordered = `(object.spec.containers != null && size(object.spec.containers) > 1 && (` +
		`(has(object.metadata.annotations) && '` + launchAnnotation + `' in object.metadata.annotations && ` +
		`object.metadata.annotations['` + launchAnnotation + `'] == '` + launchOrdered + `') || ` +
		`object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == '` + launchEnv + `'))))`

	launchAnnotation, launchOrdered, launchEnv = kruise.ContainerLaunchPriorityKey, kruise.ContainerLaunchOrdered,
		kruise.ContainerLaunchPriorityEnvName

	// gated holds for pods that have the readiness gate already.
	gated = `(has(object.spec.readinessGates) && object.spec.readinessGates.exists(g, g.conditionType == '` +
		string(kruise.KruisePodReadyConditionType) + `'))`

	// kruises holds for pods of controllers of the group apps.kruise.io.
	kruises = `has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, ` +
		`has(o.controller) && o.controller && o.apiVersion.startsWith('apps.kruise.io/'))`

	// detachable holds for pods that ask for their liveness probes to be moved, and have one. Containers that another
	// step injects come with the pod that this step sends.
	detachable = `(has(object.metadata.annotations) && '` + kruise.UsingEnhancedLivenessKey +
		`' in object.metadata.annotations && ` +
		`object.metadata.annotations['` + kruise.UsingEnhancedLivenessKey + `'] == 'true' && ` + kruises +
		` && object.spec.containers != null && object.spec.containers.exists(c, has(c.livenessProbe)))`

	// steered holds for pods whose names may come again, which a PersistentPodState needs.
	steered = `has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, ` +
		`has(o.controller) && o.controller && !((o.apiVersion + '/' + o.kind) in ` +
		`['apps/v1/ReplicaSet', 'apps/v1/DaemonSet', 'batch/v1/Job']))`
)

// Launch is the source of the step that orders the start of containers.
func Launch() Source { return Source{Step: "launch", Conditions: []Condition{{Expression: ordered}}} }

// Readiness is the source of the step that adds the gate KruisePodReady: to pods of controllers of the group
// apps.kruise.io, or to all. No pod that lacks the gate is created while no replica answers.
func Readiness(all bool) Source {
	expression := "(" + kruises + " && !" + gated + ")"
	if all {
		expression = "!" + gated
	}
	return Source{Step: "readiness", Conditions: []Condition{{Expression: expression}}}
}

// Liveness is the source of the step that moves liveness probes. While no replica answers, pods are created with their
// probes.
func Liveness() Source {
	return Source{Step: "liveness", Conditions: []Condition{{Expression: detachable, Ignore: true}}}
}
