package scope

import (
	"maps"
	"slices"
	"strings"

	"github.com/kruisekit/kruisekit/api/pub"
)

const (
	// gated says that a pod has the readiness gate already.
	gated = `(has(object.spec.readinessGates) && object.spec.readinessGates.exists(g, g.conditionType == '` + string(pub.KruisePodReadyConditionType) + `'))`

	// owned are the pods of controllers of our own group, that lack the gate.
	owned = `(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, ` +
		`has(o.controller) && o.controller && o.apiVersion.startsWith('apps.kruise.io/')) && !` + gated + `)`

	// launch are pods that ask for an order of their containers, of which there is none where one is alone.
	launch = `(size(object.spec.containers) > 1 && (` +
		`(has(object.metadata.annotations) && '` + launchAnnotation + `' in object.metadata.annotations && ` +
		`object.metadata.annotations['` + launchAnnotation + `'] == '` + launchOrdered + `') || ` +
		`object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == '` + launchEnv + `'))))`

	launchAnnotation, launchOrdered, launchEnv = pub.ContainerLaunchPriorityKey, pub.ContainerLaunchOrdered, pub.ContainerLaunchPriorityEnvName
)

// expression is a condition in CEL that holds for the pods that any of the clauses selects.
func expression(all []clause) string {
	if len(all) == 0 {
		return ""
	}
	parts := make([]string, len(all))
	for i, c := range all {
		if parts[i] = c.expression(); parts[i] == "" {
			return "true"
		}
	}
	// Labels may be missing as a whole. Their name is short because it comes often.
	return "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, " + strings.Join(parts, " || ") + ")"
}

// expression is over the labels l; empty if the clause selects all.
func (c clause) expression() string {
	var parts []string
	if n := c.namespace; n.in != nil || n.out != nil {
		parts = append(parts, flag(n.in == nil, "!")+"("+oneOf("request.namespace", append(n.in, n.out...))+")")
	}
	for _, k := range slices.Sorted(maps.Keys(c.labels)) {
		parts = append(parts, c.labels[k].expression(k))
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, " && ") + ")"
}

func (t term) expression(key string) string {
	there := quote(key) + " in l"
	value := "l[" + quote(key) + "]"
	switch {
	case t.absent:
		return "!(" + there + ")"
	case t.in != nil:
		return there + " && " + oneOf(value, t.in)
	case t.exists && t.out != nil:
		return there + " && !(" + oneOf(value, t.out) + ")"
	case t.out != nil:
		return "!(" + there + " && " + oneOf(value, t.out) + ")"
	}
	return there
}

func oneOf(value string, of []string) string {
	if len(of) == 1 {
		return value + " == " + quote(of[0])
	}
	quoted := make([]string, len(of))
	for i, v := range of {
		quoted[i] = quote(v)
	}
	return value + " in [" + strings.Join(quoted, ",") + "]"
}

// quote makes a literal of what is in labels, which have nothing to escape. What has, could not have been read.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`).Replace(s) + "'"
}
