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
)

// Launch is the source of the step that orders the start of containers.
func Launch() Source { return conditional("launch", Condition{Expression: ordered}) }
