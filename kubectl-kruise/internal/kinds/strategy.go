package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// UpdatePolicy states what a rollout does to a pod.
type UpdatePolicy string

// The policies of a rollout.
const (
	// Recreate deletes the pod and creates another one.
	Recreate UpdatePolicy = "ReCreate"
	// InPlaceIfPossible recreates the pod only where the change cannot be made in place.
	InPlaceIfPossible UpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnly leaves the pod alone where the change cannot be made in place.
	InPlaceOnly UpdatePolicy = "InPlaceOnly"
)

// Strategy is how a workload updates its pods, whatever its kind.
type Strategy struct {
	Policy UpdatePolicy
	// OnDelete leaves the update to the user, who deletes the pods.
	OnDelete bool
	Paused   bool
	// Partition is how many pods stay at the older revision. Nil is none.
	Partition *intstr.IntOrString
	// Ordinals says that the partition is the first ordinal that is updated.
	Ordinals       bool
	MaxUnavailable *intstr.IntOrString
	Lifecycle      *kruise.Lifecycle
	// Replicas is how many pods the workload wants.
	Replicas int32
	// Updated is how many pods have the update revision, as the status reports it.
	Updated        int32
	UpdateRevision string
	Template       *corev1.PodTemplateSpec
}

// StrategyOf returns the strategy of a CloneSet, a StatefulSet or a DaemonSet, or of a set of apps/v1 that is rolled
// out in place, and reports whether the object is one.
func StrategyOf(o *unstructured.Unstructured) (s Strategy, is bool, err error) {
	switch {
	case Is(o, CloneSet):
		set, err := ReadCloneSet(o)
		if err != nil {
			return s, true, err
		}
		return ofCloneSet(set), true, nil
	case Is(o, StatefulSet):
		set, err := ReadStatefulSet(o)
		if err != nil {
			return s, true, err
		}
		return ofStatefulSet(set), true, nil
	case Is(o, DaemonSet):
		set, err := ReadDaemonSet(o)
		if err != nil {
			return s, true, err
		}
		return ofDaemonSet(set), true, nil
	case IsInPlace(o):
		return ofNative(o)
	default:
		return s, false, nil
	}
}

func ofCloneSet(set *v1beta1.CloneSet) Strategy {
	s := Strategy{
		Policy: Recreate, OnDelete: set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteCloneSetUpdateStrategyType,
		Lifecycle: set.Spec.Lifecycle, Replicas: ptr.Deref(set.Spec.Replicas, 1), Updated: set.Status.UpdatedReplicas,
		UpdateRevision: set.Status.UpdateRevision, Template: &set.Spec.Template,
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		s.Policy, s.Paused = policyOf(string(rolling.PodUpdatePolicy)), rolling.Paused
		s.Partition, s.MaxUnavailable = rolling.Partition, rolling.MaxUnavailable
	}
	return s
}

func ofStatefulSet(set *v1beta1.StatefulSet) Strategy {
	s := Strategy{
		Policy: Recreate, OnDelete: string(set.Spec.UpdateStrategy.Type) == "OnDelete", Lifecycle: set.Spec.Lifecycle,
		Replicas: ptr.Deref(set.Spec.Replicas, 1), Updated: set.Status.UpdatedReplicas, Ordinals: true,
		UpdateRevision: set.Status.UpdateRevision, Template: &set.Spec.Template,
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		s.Policy, s.Paused = policyOf(string(rolling.PodUpdatePolicy)), rolling.Paused
		s.MaxUnavailable, s.Ordinals = rolling.MaxUnavailable, rolling.UnorderedUpdate == nil
		if rolling.Partition != nil {
			s.Partition = ptr.To(intstr.FromInt32(*rolling.Partition))
		}
	}
	return s
}

func ofDaemonSet(set *v1beta1.DaemonSet) Strategy {
	s := Strategy{
		Policy: Recreate, OnDelete: set.Spec.UpdateStrategy.Type == v1beta1.OnDeleteDaemonSetStrategyType,
		Lifecycle: set.Spec.Lifecycle, Replicas: set.Status.DesiredNumberScheduled,
		Updated: set.Status.UpdatedNumberScheduled, UpdateRevision: set.Status.UpdateRevision,
		Template: &set.Spec.Template,
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		s.Policy, s.Paused = policyOf(string(rolling.Type)), ptr.Deref(rolling.Paused, false)
		s.Partition, s.MaxUnavailable = rolling.Partition, rolling.MaxUnavailable
	}
	return s
}

func policyOf(value string) UpdatePolicy {
	switch p := UpdatePolicy(value); p {
	case InPlaceIfPossible, InPlaceOnly:
		return p
	default:
		return Recreate
	}
}

// Kept returns how many of the pods a partition keeps at the older revision. A percentage below 100 never keeps all.
func Kept(partition *intstr.IntOrString, replicas int32) int32 {
	if partition == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(partition, int(replicas), true)
	if err != nil {
		return 0
	}
	if partition.Type == intstr.String && partition.StrVal != "100%" && replicas > 1 {
		n = min(n, int(replicas)-1)
	}
	return min(max(int32(n), 0), replicas)
}
