package kinds

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	controller "github.com/kruisekit/kruisekit/controllers/native"
	"github.com/kruisekit/kruisekit/workload/native"
)

// IsInPlace reports whether an object is a Deployment, a StatefulSet or a DaemonSet of apps/v1 that is rolled out in
// place: its annotation asks for that, or it is held, or it has a status of the reconciler, as where its namespace
// asks.
func IsInPlace(o *unstructured.Unstructured) bool {
	_, asks := native.Request(o, nil)
	_, reported := o.GetAnnotations()[controller.StatusKey]
	return IsNative(o) && (asks || reported || IsHeld(o))
}

// IsHeld reports whether an object is a Deployment that admission has paused for a rollout in place.
func IsHeld(o *unstructured.Unstructured) bool {
	_, held := o.GetAnnotations()[native.HoldKey]
	return held && IsNative(o) && o.GetKind() == Deployment && SpecPaused(o)
}

// SpecPaused reports whether the field spec.paused of an object is true.
func SpecPaused(o *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return paused
}

// RolloutOf returns what a set of apps/v1 asks for; the zero value where its annotation is invalid.
func RolloutOf(o *unstructured.Unstructured) native.Rollout {
	text, _ := native.Request(o, nil)
	r, faults := native.Parse(text, native.Kind(o.GetKind()), field.NewPath("metadata", "annotations"))
	if len(faults) > 0 {
		return native.Rollout{}
	}
	return r
}

// Progress returns the status that the reconciler has reported of a set of apps/v1; nil for none.
func Progress(o *unstructured.Unstructured) *controller.Progress {
	p := &controller.Progress{}
	if err := json.Unmarshal([]byte(o.GetAnnotations()[controller.StatusKey]), p); err != nil {
		return nil
	}
	return p
}

// ofNative returns the strategy of a set of apps/v1 that is rolled out in place. A Deployment has one while it is
// paused for that: otherwise no label shows the revision of its pods.
func ofNative(o *unstructured.Unstructured) (s Strategy, is bool, err error) {
	p := Progress(o)
	if p == nil || o.GetKind() == Deployment && (!SpecPaused(o) || p.State == controller.StateComplete) {
		return Strategy{}, false, nil
	}
	r := RolloutOf(o)
	s = Strategy{
		Policy: InPlaceIfPossible, Paused: r.Paused, Partition: ptr.To(intstr.FromInt32(r.Partition)),
		MaxUnavailable: r.MaxUnavailable, Replicas: p.Pods, Updated: p.Updated, UpdateRevision: p.Revision,
	}
	if r.PodUpdatePolicy != "" {
		s.Policy = policyOf(string(r.PodUpdatePolicy))
	}
	s.Template, err = Template(o)
	return s, true, err
}
