package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/scale"
)

// RolloutKey is the annotation that asks for the rollout of a set: a Rollout as JSON, Enabled or Disabled. It is also
// the label of a namespace that asks for all sets in it, with the value Enabled.
const RolloutKey = "kruisekit.dev/rollout"

// The words that the annotation takes besides JSON.
const (
	// Enabled asks for a rollout with the defaults, as {} does.
	Enabled = "enabled"
	// Disabled asks for none, whatever the label of the namespace says.
	Disabled = "disabled"
)

// Request returns what a set asks for: a text to Parse. ok is false if the set asks for nothing. The annotation of the
// set wins over the label of its namespace, which may be nil.
func Request(set, namespace metav1.Object) (text string, ok bool) {
	text, ok = set.GetAnnotations()[RolloutKey]
	if !ok && namespace != nil && namespace.GetLabels()[RolloutKey] == Enabled {
		text, ok = Enabled, true
	}
	switch text {
	case Enabled:
		return "{}", ok
	case Disabled:
		return "", false
	}
	return text, ok
}

// Kind is the kind of a set.
type Kind string

// The kinds.
const (
	KindStatefulSet Kind = "StatefulSet"
	KindDaemonSet   Kind = "DaemonSet"
	KindDeployment  Kind = "Deployment"
)

// UpdatePolicy is how a pod goes to another revision.
type UpdatePolicy string

const (
	// InPlaceIfPossible changes the running pod, and evicts it where that is not possible. It is the default.
	InPlaceIfPossible UpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnly changes the running pod, and reports where that is not possible.
	InPlaceOnly UpdatePolicy = "InPlaceOnly"
	// ReCreate evicts the pod.
	ReCreate UpdatePolicy = "ReCreate"
)

// Resources is what happens where cpu and memory of a container change.
type Resources string

const (
	// ResourcesRecreate takes such a change for one that is not possible in place.
	ResourcesRecreate Resources = "Recreate"
	// ResourcesInPlace resizes the running pod. It needs Kubernetes 1.33, and is the default where Observed.Installed says
	// that pods are resized.
	ResourcesInPlace Resources = "InPlace"
)

// Ordered is a value of maxUnavailable: the pods of a StatefulSet are updated one at a time, the highest ordinal first,
// each once all others are available.
const Ordered = "ordered"

// Rollout is how the pods of a set go to another revision. The zero value updates one pod at a time, in place where
// that is possible.
type Rollout struct {
	// Class is the installation that acts; empty for the one without a class.
	Class string `json:"class,omitempty"`
	// PodUpdatePolicy is how a pod goes to another revision; empty for InPlaceIfPossible.
	PodUpdatePolicy UpdatePolicy `json:"podUpdatePolicy,omitempty"`
	// MaxUnavailable is how many pods may be unavailable: a number, a percentage of the pods, or Ordered. Nil is for one.
	// A percentage is at least one pod; it is rounded down for a StatefulSet and up for a DaemonSet, as in their own
	// strategies.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// Partition is how many pods stay at their revision: those with the lowest ordinals, or any of a DaemonSet.
	Partition int32 `json:"partition,omitempty"`
	// Paused begins no update.
	Paused bool `json:"paused,omitempty"`
	// MinReadySeconds is how long a pod is ready before it counts as available; nil for that of the set.
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
	// GracePeriodSeconds pass between taking a pod out of traffic and changing its containers.
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
	// Resources is what happens where cpu and memory change; empty for ResourcesInPlace where pods are resized, and for
	// ResourcesRecreate elsewhere.
	Resources Resources `json:"resources,omitempty"`
}

const textNoObject = "must be a JSON object such as {}, " + Enabled + " or " + Disabled

// Parse reads the value of the annotation of a set. With an error the Rollout is of no use. The errors name all values
// that are wrong, and the first field that is unknown or has another type.
func Parse(text string, kind Kind, path *field.Path) (Rollout, field.ErrorList) {
	var r *Rollout
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&r)
	if err == nil && (r == nil || decoder.Decode(&struct{}{}) != io.EOF) {
		err = errors.New("is something else")
	}
	if err != nil {
		return Rollout{}, field.ErrorList{field.Invalid(path, text, fmt.Sprintf("%s: %v", textNoObject, err))}
	}
	return *r, r.validate(kind, path)
}

// validate returns what is wrong with the values.
func (r *Rollout) validate(kind Kind, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if values := []UpdatePolicy{InPlaceIfPossible, InPlaceOnly, ReCreate}; r.PodUpdatePolicy != "" &&
		!slices.Contains(values, r.PodUpdatePolicy) {
		faults = append(faults, field.NotSupported(path.Child("podUpdatePolicy"), r.PodUpdatePolicy, values))
	}
	if values := []Resources{ResourcesRecreate, ResourcesInPlace}; r.Resources != "" &&
		!slices.Contains(values, r.Resources) {
		faults = append(faults, field.NotSupported(path.Child("resources"), r.Resources, values))
	}
	for name, value := range map[string]int32{
		"partition": r.Partition, "gracePeriodSeconds": r.GracePeriodSeconds, "minReadySeconds": r.minReady(0),
	} {
		if value < 0 {
			faults = append(faults, field.Invalid(path.Child(name), value, "must be greater than or equal to 0"))
		}
	}
	slices.SortFunc(faults, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return append(faults, r.validateAmount(kind, path.Child("maxUnavailable"))...)
}

func (r *Rollout) validateAmount(kind Kind, path *field.Path) field.ErrorList {
	v := r.MaxUnavailable
	if v == nil || r.isOrdered() && kind == KindStatefulSet {
		return nil
	}
	if r.isOrdered() {
		return field.ErrorList{field.Invalid(path, v.StrVal, fmt.Sprintf("must be for a StatefulSet; this is a %s", kind))}
	}
	n, err := scale.Amount(*v, 100, scale.RoundUp)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, v.String(), "must be a whole number, a percentage or "+Ordered)}
	case n <= 0 || v.Type == intstr.String && n > 100:
		return field.ErrorList{field.Invalid(path, v.String(), "must be greater than 0, and not more than 100%")}
	}
	return nil
}

func (r *Rollout) isOrdered() bool {
	return r.MaxUnavailable != nil && r.MaxUnavailable.Type == intstr.String && r.MaxUnavailable.StrVal == Ordered
}

// minReady is how long a pod is ready before it counts as available.
func (r *Rollout) minReady(ofSet int32) int32 { return ptr.Deref(r.MinReadySeconds, ofSet) }

// maxUnavailable is how many of some pods may be unavailable. A value that Parse refuses counts as one.
func (r *Rollout) maxUnavailable(of int32, rounding scale.Rounding) int32 {
	if r.isOrdered() {
		return 1
	}
	n, err := scale.AmountOr(r.MaxUnavailable, 1, of, rounding)
	if err != nil {
		return 1
	}
	return max(n, 1)
}
