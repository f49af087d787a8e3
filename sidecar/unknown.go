package sidecar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/revision"
)

// unknown are the fields of a pod that the types lack, as far as a set has them. Elements have the names of the list.
type unknown struct {
	Containers     []map[string]any `json:"containers,omitempty"`
	InitContainers []map[string]any `json:"initContainers,omitempty"`
	Volumes        []map[string]any `json:"volumes,omitempty"`
}

// KeepUnknownFields keeps the fields of a decoded spec that the types lack: those of a newer Kubernetes. Inject keeps
// them in the pod, which must be sent by package driver, or as revision.WithUnknownFields returns it.
func KeepUnknownFields(set *appsv1beta1.SidecarSet, spec any) error {
	delete(set.Annotations, revision.UnknownFieldsKey) // users cannot set it
	text, err := revision.UnknownFields(spec, appsv1beta1.SidecarSetSpec{})
	if err == nil && text != "" {
		annotate(&set.ObjectMeta, revision.UnknownFieldsKey, text)
	}
	return err
}

// readUnknown returns what KeepUnknownFields kept.
func readUnknown(set *appsv1beta1.SidecarSet) unknown {
	var u unknown
	if text := set.Annotations[revision.UnknownFieldsKey]; text != "" {
		_ = utiljson.Unmarshal([]byte(text), &u) // what has another shape is in a list that is none
	}
	return u
}

// take adds the element of a list with a name under the name that it has in the pod.
func take(to *[]map[string]any, from []map[string]any, name, inPod string) {
	i := slices.IndexFunc(from, func(element map[string]any) bool { return element["name"] == name })
	if i < 0 {
		return
	}
	element := maps.Clone(from[i])
	element["name"] = inPod
	*to = append(*to, element)
}

// mergeUnknown adds the unknown fields of injected parts to those of the pod.
func (in *injector) mergeUnknown() error {
	if len(in.unknown.Containers)+len(in.unknown.InitContainers)+len(in.unknown.Volumes) == 0 {
		return nil
	}
	pod, spec := map[string]any{}, map[string]any{}
	if text := in.pod.Annotations[revision.UnknownFieldsKey]; text != "" {
		if err := utiljson.Unmarshal([]byte(text), &pod); err != nil {
			return fmt.Errorf("read unknown fields: %w", err)
		}
		if pod == nil {
			pod = map[string]any{}
		}
	}
	if have, ok := pod["spec"].(map[string]any); ok {
		spec = have
	}
	for field, more := range map[string][]map[string]any{
		"containers": in.unknown.Containers, "initContainers": in.unknown.InitContainers, "volumes": in.unknown.Volumes,
	} {
		list, _ := spec[field].([]any)
		for _, element := range more {
			list = slices.DeleteFunc(list, func(of any) bool {
				have, _ := of.(map[string]any)
				return have["name"] == element["name"] // it is replaced
			})
			list = append(list, element)
		}
		if len(list) > 0 {
			spec[field] = list
		}
	}
	pod["spec"] = spec
	text, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encode unknown fields: %w", err)
	}
	annotate(&in.pod.ObjectMeta, revision.UnknownFieldsKey, string(text))
	return nil
}

// takeUnknown collects the unknown fields of what a set adds to the pod.
func (in *injector) takeUnknown(set *Set, p *part, containers []corev1.Container, init bool) {
	from, to := set.unknown.Containers, &in.unknown.Containers
	if init {
		from, to = set.unknown.InitContainers, &in.unknown.InitContainers
	}
	for i := range containers {
		take(to, from, p.Name, containers[i].Name)
	}
}
