package kinds

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/revision"
)

// The groups of the kinds.
const (
	Apps     = "apps.kruise.io"
	Policy   = "policy.kruise.io"
	Rollouts = "rollouts.kruise.io"
)

// Names of kinds, which two groups may have.
const (
	CloneSet         = "CloneSet"
	Deployment       = "Deployment"
	StatefulSet      = "StatefulSet"
	DaemonSet        = "DaemonSet"
	UnitedDeployment = "UnitedDeployment"
	SidecarSet       = "SidecarSet"
	BroadcastJob     = "BroadcastJob"
	AdvancedCronJob  = "AdvancedCronJob"
	EphemeralJob     = "EphemeralJob"
	Rollout          = "Rollout"
)

// IsOurs reports whether kubectl itself does not know a kind.
func IsOurs(kind schema.GroupKind) bool {
	return kind.Group == Apps || kind.Group == Policy || kind.Group == Rollouts
}

// Is reports whether an object is of a kind of apps.kruise.io.
func Is(o *unstructured.Unstructured, kind string) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Group: Apps, Kind: kind}
}

// IsNative reports whether an object is a Deployment, a StatefulSet or a DaemonSet of apps/v1.
func IsNative(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind()
	return kind.GroupVersion() == appsv1.SchemeGroupVersion &&
		(kind.Kind == Deployment || kind.Kind == StatefulSet || kind.Kind == DaemonSet)
}

// TemplatePath returns the path of the pod template of an object: nil where the object has none.
func TemplatePath(o *unstructured.Unstructured) []string {
	kind := o.GroupVersionKind().GroupKind()
	switch {
	case kind.Group == Apps && kind.Kind == UnitedDeployment:
		return unitedTemplate(o)
	case kind.Group == Apps && kind.Kind == AdvancedCronJob:
		for _, field := range []string{"jobTemplate", "broadcastJobTemplate"} {
			if at := []string{"spec", "template", field, "spec", "template"}; has(o, at) {
				return at
			}
		}
		return nil
	case kind.Group == "batch" && kind.Kind == "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	if at := []string{"spec", "template", "spec"}; has(o, at) {
		return at[:2]
	}
	return nil
}

// unitedTemplate returns the path of the pod template in the template of a UnitedDeployment.
func unitedTemplate(o *unstructured.Unstructured) []string {
	for _, field := range []string{
		"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate",
	} {
		if at := []string{"spec", "template", field, "spec", "template"}; has(o, at) {
			return at
		}
	}
	return nil
}

// PodSpecPath returns the path of what has containers: the spec of the pod template, or that of a SidecarSet.
func PodSpecPath(o *unstructured.Unstructured) []string {
	if Is(o, SidecarSet) {
		return []string{"spec"}
	}
	if at := TemplatePath(o); at != nil {
		return append(at, "spec")
	}
	return nil
}

// PausePath returns the path of the field that pauses a rollout or a job: nil where the kind has none.
func PausePath(kind schema.GroupVersionKind) []string {
	switch kind.GroupKind() {
	case schema.GroupKind{Group: Apps, Kind: CloneSet}:
		if kind.Version == "v1alpha1" {
			return []string{"spec", "updateStrategy", "paused"}
		}
		return []string{"spec", "updateStrategy", "rollingUpdate", "paused"}
	case schema.GroupKind{Group: Apps, Kind: StatefulSet}, schema.GroupKind{Group: Apps, Kind: DaemonSet}:
		return []string{"spec", "updateStrategy", "rollingUpdate", "paused"}
	case schema.GroupKind{Group: Apps, Kind: SidecarSet}:
		return []string{"spec", "updateStrategy", "paused"}
	case schema.GroupKind{Group: Apps, Kind: BroadcastJob}, schema.GroupKind{Group: Apps, Kind: AdvancedCronJob},
		schema.GroupKind{Group: Apps, Kind: EphemeralJob}, schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return []string{"spec", "paused"}
	case schema.GroupKind{Group: Rollouts, Kind: Rollout}:
		return []string{"spec", "strategy", "paused"}
	default:
		return nil
	}
}

// Paused reports whether the rollout of an object is paused. A rollout in place is paused by its annotation: its pods
// are updated whether spec.paused is set or not.
func Paused(o *unstructured.Unstructured) bool {
	if IsInPlace(o) {
		return RolloutOf(o).Paused
	}
	at := PausePath(o.GroupVersionKind())
	if at == nil {
		return false
	}
	paused, _, _ := unstructured.NestedBool(o.Object, at...)
	return paused
}

// Template returns the pod template of an object.
func Template(o *unstructured.Unstructured) (*corev1.PodTemplateSpec, error) {
	at := TemplatePath(o)
	fields, found, err := unstructured.NestedMap(o.Object, at...)
	if at == nil || !found || err != nil {
		return nil, fmt.Errorf("%s %s has no pod template", o.GetKind(), o.GetName())
	}
	template := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template); err != nil {
		return nil, fmt.Errorf("read the pod template of %s: %w", o.GetName(), err)
	}
	return template, revision.KeepUnknownFields(template, fields)
}

// Containers returns the containers or the init containers of an object.
func Containers(o *unstructured.Unstructured, field string) ([]corev1.Container, error) {
	at := PodSpecPath(o)
	if at == nil {
		return nil, fmt.Errorf("%s %s has no containers", o.GetKind(), o.GetName())
	}
	list, _, err := unstructured.NestedSlice(o.Object, append(at, field)...)
	if err != nil {
		return nil, err
	}
	var holder struct {
		Containers []corev1.Container `json:"containers"`
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"containers": list}, &holder)
	return holder.Containers, err
}

// has reports whether an object has a field that is an object.
func has(o *unstructured.Unstructured, at []string) bool {
	fields, found, err := unstructured.NestedMap(o.Object, at...)
	return found && err == nil && fields != nil
}
