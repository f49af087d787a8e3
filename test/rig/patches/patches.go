// Package patches applies patches to objects in memory as an API server does, and reports what of a patch an API server
// drops.
package patches

import (
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DroppedError is a fault of a writer: the API server drops or rejects a part of the patch.
type DroppedError struct{ Subresource, Changed string }

// Error implements error.
func (e *DroppedError) Error() string {
	return fmt.Sprintf("a patch of %q changes %s", e.Subresource, e.Changed)
}

// Apply returns the encoded object after a patch. like is a value of the type of the object.
func Apply(raw []byte, patch types.PatchType, data []byte, like any) ([]byte, error) {
	switch patch {
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		raw, err = ops.Apply(raw)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return raw, nil
	case types.MergePatchType:
		raw, err := jsonpatch.MergePatch(raw, data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return raw, nil
	case types.StrategicMergePatchType:
		raw, err := strategicpatch.StrategicMergePatch(raw, data, like)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return raw, nil
	}
	return nil, apierrors.NewBadRequest("no patch of type " + string(patch))
}

// CheckPod returns an error for a patch of a pod that changes more than its subresource has, or that no API server
// stores.
func CheckPod(subresource string, before, after *corev1.Pod) error {
	same := apiequality.Semantic.DeepEqual
	switch subresource {
	case "status":
		metadata := after.ObjectMeta // API servers take labels and annotations with a status
		metadata.Labels, metadata.Annotations = before.Labels, before.Annotations
		if !same(before.ObjectMeta, metadata) || !same(before.Spec, after.Spec) {
			return &DroppedError{subresource, "more than the status"}
		}
	case "resize":
		resources := func(c, like *corev1.Container) { c.Resources = like.Resources }
		if !same(before.ObjectMeta, after.ObjectMeta) || !same(before.Status, after.Status) ||
			!same(before.Spec, evened(after, before, resources)) {
			return &DroppedError{subresource, "more than resources"}
		}
	case "ephemeralcontainers":
		return checkEphemeral(before, after)
	default:
		if !same(before.Status, after.Status) {
			return &DroppedError{subresource, "the status"}
		}
		if !same(before.Spec, evened(after, before, func(c, like *corev1.Container) { c.Image = like.Image })) {
			return &DroppedError{subresource, "what a running pod keeps"}
		}
		if after.DeletionTimestamp != nil && len(after.Finalizers) > len(before.Finalizers) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, after.Name,
				errors.New("a pod that is deleted gets no finalizers"))
		}
	}
	return checkConditions(after)
}

// checkEphemeral returns an error where more than ephemeral containers is added: one that exists is neither changed nor
// removed, and has the name alone.
func checkEphemeral(before, after *corev1.Pod) error {
	same := apiequality.Semantic.DeepEqual
	spec := *after.Spec.DeepCopy()
	spec.EphemeralContainers = before.Spec.EphemeralContainers
	if !same(before.ObjectMeta, after.ObjectMeta) || !same(before.Status, after.Status) || !same(before.Spec, spec) {
		return &DroppedError{"ephemeralcontainers", "more than ephemeral containers"}
	}
	have := map[string]*corev1.EphemeralContainer{}
	for i := range after.Spec.EphemeralContainers {
		c := &after.Spec.EphemeralContainers[i]
		if have[c.Name] != nil {
			return invalid(after, field.Duplicate(field.NewPath("spec", "ephemeralContainers").Index(i).Child("name"), c.Name))
		}
		have[c.Name] = c
	}
	for i := range before.Spec.EphemeralContainers {
		if c := &before.Spec.EphemeralContainers[i]; have[c.Name] == nil || !same(*c, *have[c.Name]) {
			return invalid(after, field.Forbidden(field.NewPath("spec", "ephemeralContainers"),
				"existing ephemeral containers must not be changed or removed"))
		}
	}
	return nil
}

func invalid(pod *corev1.Pod, fault *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, field.ErrorList{fault})
}

// evened is the spec of a pod, with a part of its containers as in another pod.
func evened(pod, like *corev1.Pod, even func(c, like *corev1.Container)) corev1.PodSpec {
	spec := *pod.Spec.DeepCopy()
	for i := range spec.Containers {
		if i < len(like.Spec.Containers) {
			even(&spec.Containers[i], &like.Spec.Containers[i])
		}
	}
	return spec
}

func checkConditions(pod *corev1.Pod) error {
	seen := map[corev1.PodConditionType]bool{}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if seen[c.Type] || c.Type == "" || c.Status == "" {
			return &DroppedError{"status", fmt.Sprintf("condition %q to one that exists already, or is empty", c.Type)}
		}
		seen[c.Type] = true
	}
	return nil
}
