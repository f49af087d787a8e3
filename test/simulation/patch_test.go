package simulation

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/test/patches"
)

// change is a request to patch a pod.
type change struct {
	by, pod, subresource string
	kind                 types.PatchType
	data                 []byte
}

// patch changes a pod, as the API server does.
func (s *server) patch(c change) (*corev1.Pod, error) {
	have := s.pods[c.pod]
	if have == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, c.pod)
	}
	raw, err := patches.Apply(have.raw, c.kind, c.data, corev1.Pod{})
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
	if err := patches.CheckPod(c.subresource, have.pod, pod); err != nil {
		return nil, err
	}
	if !apiequality.Semantic.DeepEqual(pod.Spec, have.pod.Spec) {
		pod.Generation++
	}
	return s.replace(apiWrite{by: c.by, verb: "patch", subresource: c.subresource, before: have.pod, after: pod})
}
