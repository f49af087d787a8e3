package scope

import "github.com/kruisekit/kruisekit/api/kruise"

// detachable holds for pods of controllers of the group apps.kruise.io that ask for their liveness probes to be moved,
// and have one. Containers that another step injects come with the pod that this step sends.
const detachable = `(has(object.metadata.annotations) && '` + kruise.UsingEnhancedLivenessKey +
	`' in object.metadata.annotations && ` +
	`object.metadata.annotations['` + kruise.UsingEnhancedLivenessKey + `'] == 'true' && ` +
	`has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, ` +
	`has(o.controller) && o.controller && o.apiVersion.startsWith('apps.kruise.io/')) && ` +
	`object.spec.containers != null && object.spec.containers.exists(c, has(c.livenessProbe)))`

// Liveness is the source of the step that moves liveness probes. While no replica answers, pods are created with their
// probes.
func Liveness() Source {
	return conditional("liveness", Condition{Expression: detachable, Ignore: true})
}
