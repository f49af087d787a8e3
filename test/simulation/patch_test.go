package simulation

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// change is a request to patch a pod.
type change struct {
	by, pod, subresource string
	kind                 types.PatchType
	data                 []byte
}

// reachError is a fault of the writer: the API server would drop in silence what a writer meant to write.
type reachError struct{ subresource, what string }

func (e *reachError) Error() string {
	return fmt.Sprintf("a patch of %q changes %s", e.subresource, e.what)
}

// patch changes a pod, as the API server does.
func (s *server) patch(c change) (*corev1.Pod, error) {
	have := s.pods[c.pod]
	if have == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, c.pod)
	}
	raw, err := apply(have.raw, c)
	if err != nil {
		return nil, err
	}
	pod := new(corev1.Pod)
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, fmt.Errorf("decode patched pod: %w", err)
	}
	if pod.UID != have.pod.UID || pod.ResourceVersion != have.pod.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, c.pod, fmt.Errorf("it is another one"))
	}
	if err := within(c.subresource, have.pod, pod); err != nil {
		return nil, err
	}
	if err := valid(pod); err != nil {
		return nil, err
	}
	if !apiequality.Semantic.DeepEqual(pod.Spec, have.pod.Spec) {
		pod.Generation++
	}
	return s.replace(apiWrite{by: c.by, verb: "patch", subresource: c.subresource, before: have.pod, after: pod})
}

func apply(raw []byte, c change) ([]byte, error) {
	switch c.kind {
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(c.data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		raw, err = ops.Apply(raw)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(422, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return raw, nil
	case types.MergePatchType:
		raw, err := jsonpatch.MergePatch(raw, c.data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return raw, nil
	case types.StrategicMergePatchType:
		raw, err := strategicpatch.StrategicMergePatch(raw, c.data, corev1.Pod{})
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return raw, nil
	}
	return nil, apierrors.NewBadRequest("no patch of type " + string(c.kind))
}

// within says whether a patch changes no more than what its subresource is for.
func within(subresource string, before, after *corev1.Pod) error {
	same := apiequality.Semantic.DeepEqual
	switch subresource {
	case "status":
		if !same(before.ObjectMeta, after.ObjectMeta) || !same(before.Spec, after.Spec) {
			return &reachError{subresource, "more than the status"}
		}
	case "resize":
		resources := func(c, like *corev1.Container) { c.Resources = like.Resources }
		if !same(before.ObjectMeta, after.ObjectMeta) || !same(before.Status, after.Status) || !same(before.Spec, evened(after, before, resources)) {
			return &reachError{subresource, "more than resources"}
		}
	default:
		if !same(before.Status, after.Status) {
			return &reachError{subresource, "the status"}
		}
		if !same(before.Spec, evened(after, before, func(c, like *corev1.Container) { c.Image = like.Image })) {
			return &reachError{subresource, "what a running pod keeps"}
		}
		if after.DeletionTimestamp != nil && len(after.Finalizers) > len(before.Finalizers) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, after.Name, errors.New("a pod that is deleted gets no finalizers"))
		}
	}
	return nil
}

// evened is the spec of a pod, with something of its containers as in another.
func evened(pod, like *corev1.Pod, even func(c, like *corev1.Container)) corev1.PodSpec {
	spec := *pod.Spec.DeepCopy()
	for i := range spec.Containers {
		if i < len(like.Spec.Containers) {
			even(&spec.Containers[i], &like.Spec.Containers[i])
		}
	}
	return spec
}

// valid says whether the server stores such a pod.
func valid(pod *corev1.Pod) error {
	seen := map[corev1.PodConditionType]bool{}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if seen[c.Type] || c.Type == "" || c.Status == "" {
			return &reachError{"status", fmt.Sprintf("condition %q to one that is there already, or empty", c.Type)}
		}
		seen[c.Type] = true
	}
	return nil
}
