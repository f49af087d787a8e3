package podtemplate

import "k8s.io/apimachinery/pkg/runtime"

// Defaults are those that the API server does not set.
type Defaults struct {
	// PullAlways sets the pull policy of containers without one to Always, whatever the tag of the image. Init containers
	// get the default of the API server.
	PullAlways bool
	// HostPorts sets the host ports of pods in the host's network to their container ports.
	HostPorts bool
}

// Prepare returns a copy of the template with these defaults.
func Prepare(template map[string]any, d Defaults) map[string]any {
	template = runtime.DeepCopyJSON(template)
	spec, _ := template["spec"].(map[string]any)
	if d.PullAlways {
		for _, c := range objects(spec["containers"]) {
			if isZero(c["imagePullPolicy"]) {
				c["imagePullPolicy"] = "Always"
			}
		}
	}
	if host, _ := spec["hostNetwork"].(bool); host && d.HostPorts {
		for _, list := range []string{"initContainers", "containers"} {
			for _, c := range objects(spec[list]) {
				hostPorts(c)
			}
		}
	}
	return template
}

func hostPorts(container map[string]any) {
	for _, port := range objects(container["ports"]) {
		if isZero(port["hostPort"]) && !isZero(port["containerPort"]) {
			port["hostPort"] = port["containerPort"]
		}
	}
}

// objects returns the elements of a list that are objects.
func objects(list any) []map[string]any {
	elements, _ := list.([]any)
	all := make([]map[string]any, 0, len(elements))
	for _, e := range elements {
		if object, ok := e.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}
