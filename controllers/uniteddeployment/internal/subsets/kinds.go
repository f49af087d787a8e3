package subsets

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// Kinds are the kinds of workloads that subsets may have.
func Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		cloneSet(), v1beta1.GroupVersion.WithKind("StatefulSet"), statefulSet(), deployment(),
	}
}

// OwnerKind is UnitedDeployment.
func OwnerKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("UnitedDeployment") }

func cloneSet() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("CloneSet") }

func statefulSet() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("StatefulSet") }

func deployment() schema.GroupVersionKind { return appsv1.SchemeGroupVersion.WithKind("Deployment") }

// Template is the one template of a UnitedDeployment.
type Template struct{ validation.Template }

// Reserves reports whether pods of the kind can be reserved: a StatefulSet cannot have a substitute for a pod.
func (t *Template) Reserves() bool { return t.Kind == cloneSet() || t.Kind == deployment() }

// Child is the workload of a subset.
type Child struct {
	Kind schema.GroupVersionKind
	// Object may be that of the cache, and is only read.
	Object *unstructured.Unstructured
	// Subset as its selector has it, which cannot change; as its label has it where the selector has none.
	Subset string
	// Revision as its label has it.
	Revision string
	// Replicas and Partition that it is to have.
	Replicas, Partition int32
	// Terminating reports that it is being deleted.
	Terminating bool
	// Observed reports that its status is about its spec.
	Observed bool
	// Pods that it has, and those of its newest template.
	Pods, Ready, Updated, UpdatedReady int32
}

// Observe reads a workload.
func Observe(kind schema.GroupVersionKind, o *unstructured.Unstructured) *Child {
	labels := o.GetLabels()
	c := &Child{
		Kind:        kind,
		Object:      o,
		Subset:      cmp.Or(selected(o), labels[kruise.SubSetNameLabelKey]),
		Revision:    labels[kruise.ControllerRevisionHashLabelKey],
		Terminating: o.GetDeletionTimestamp() != nil,
		Replicas:    1,
		Pods:        number(o, "status", "replicas"),
		Ready:       number(o, "status", "readyReplicas"),
		Updated:     number(o, "status", "updatedReplicas"),
	}
	if _, found, err := stored.Field(o, "spec", "replicas"); found && err == nil {
		c.Replicas = number(o, "spec", "replicas")
	}
	if kind != deployment() {
		c.Partition = number(o, "spec", "updateStrategy", "rollingUpdate", "partition")
	}
	observed, _, _ := stored.Value[int64](o, "status", "observedGeneration")
	c.Observed = observed >= o.GetGeneration()
	// The built-in kinds do not count updated pods that are ready. The ready ones are all updated, but for as many as
	// there are older pods.
	c.UpdatedReady = max(0, c.Ready-max(0, c.Pods-c.Updated))
	if kind.Group == v1beta1.GroupVersion.Group {
		c.UpdatedReady = number(o, "status", "updatedReadyReplicas")
	}
	return c
}

// selected returns the subset in the selector of a workload.
func selected(o *unstructured.Unstructured) string {
	subset, _, _ := stored.Value[string](o, "spec", "selector", "matchLabels", kruise.SubSetNameLabelKey)
	return subset
}

// number reads a count; 0 where there is none.
func number(o *unstructured.Unstructured, path ...string) int32 {
	n, _, _ := stored.Value[int64](o, path...)
	return int32(max(0, min(n, math.MaxInt32)))
}

// strategy is the field of the spec that has the strategy of updates.
func (c *Child) strategy() string {
	if c.Kind == deployment() {
		return "strategy"
	}
	return "updateStrategy"
}

// MaxUnavailable is how many pods may be unavailable during an update; 0 where that is a percentage or not said.
func (c *Child) MaxUnavailable() int32 {
	return number(c.Object, "spec", c.strategy(), "rollingUpdate", "maxUnavailable")
}

// Owns reports whether a pod belongs to the child. ReplicaSets of a Deployment are recognised by their names.
func (c *Child) Owns(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	switch {
	case ref == nil:
		return false
	case c.Kind == deployment():
		return ref.Kind == "ReplicaSet" &&
			ref.Name == c.Object.GetName()+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}
	return ref.UID == c.Object.GetUID()
}

// Stuck reports whether the pods of the child must be searched for one that keeps a rollout from going on: a
// StatefulSet waits for each pod, also for one of a revision that never becomes ready.
func (c *Child) Stuck() bool {
	return c.Kind == statefulSet() && c.Observed && c.Updated < c.Pods-c.Partition && c.Ready < c.Pods &&
		!onDelete(c.Object)
}

func onDelete(o *unstructured.Unstructured) bool {
	t, _, _ := stored.Value[string](o, "spec", "updateStrategy", "type")
	return t == string(appsv1.OnDeleteStatefulSetStrategyType)
}

// maxPrefix is what API servers leave of the prefix of a generated name.
const maxPrefix = 58

// Name returns the name of the workload of a subset, in the form of generated names. It is the same each time, so that
// a creation whose answer is lost is not repeated under another name.
func Name(owner *v1beta1.UnitedDeployment, subset string) string {
	prefix := owner.Name + "-" + subset + "-"
	if len(apivalidation.NameIsDNSSubdomain(prefix, true)) > 0 {
		prefix = owner.Name + "-"
	}
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/0", owner.UID, subset))
	n, suffix := binary.BigEndian.Uint64(sum[:8]), make([]byte, 5)
	for i := range suffix {
		suffix[i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return prefix[:min(len(prefix), maxPrefix)] + string(suffix)
}
