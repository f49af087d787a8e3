package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// fromKey is the annotation of a target that takes pods over: the source, the revision and the holder of the pods.
	fromKey = "kruisekit.dev/migrating-from"
	// recordKey is the annotation of a target with the manifest of its source, which the way back creates again.
	recordKey = "kruisekit.dev/migrated-from"
)

// Workload is what a migration in place reads of a source, of its ReplicaSets and of a target, in whatever version.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   WorkloadSpec   `json:"spec"`
	Status WorkloadStatus `json:"status"`
}

// WorkloadSpec is what decides about the pods.
type WorkloadSpec struct {
	Replicas *int32                 `json:"replicas"`
	Selector *metav1.LabelSelector  `json:"selector"`
	Template corev1.PodTemplateSpec `json:"template"`
}

// WorkloadStatus is how far a rollout is.
type WorkloadStatus struct {
	ObservedGeneration int64  `json:"observedGeneration"`
	Replicas           int32  `json:"replicas"`
	UpdatedReplicas    int32  `json:"updatedReplicas"`
	ReadyReplicas      int32  `json:"readyReplicas"`
	UpdateRevision     string `json:"updateRevision"`
}

func (w *Workload) String() string {
	kind := w.GroupVersionKind().GroupKind()
	if kind.Kind == kinds.StatefulSet && kind.Group == kinds.Apps {
		return kind.String() + "/" + w.Name
	}
	return kind.Kind + "/" + w.Name
}

// Settled returns why the pods of a source cannot change their owner now: nil where they can.
func Settled(w *Workload) error {
	want, s := ptr.Deref(w.Spec.Replicas, 1), w.Status
	owner := metav1.GetControllerOf(w)
	switch {
	case w.DeletionTimestamp != nil:
		return fmt.Errorf("%s is being deleted", w)
	case owner != nil:
		return fmt.Errorf("%s belongs to %s/%s, which would create another one: change that object instead", w,
			owner.Kind, owner.Name)
	case s.ObservedGeneration < w.Generation:
		return fmt.Errorf("the controller of %s has not observed its last change: wait, and try again", w)
	case s.Replicas != want || s.UpdatedReplicas != want || s.ReadyReplicas != want:
		return fmt.Errorf("%s is not settled: it wants %d replicas, has %d, and %d are updated, %d ready: "+
			"complete or undo its rollout first", w, want, s.Replicas, s.UpdatedReplicas, s.ReadyReplicas)
	}
	return nil
}

// Holder returns which of the ReplicaSets that a Deployment selects has its pods: nil for none.
func Holder(source *Workload, sets []*Workload) (holder *Workload, err error) {
	for _, set := range sets {
		switch {
		case !metav1.IsControlledBy(set, source):
			return nil, fmt.Errorf("%s has the labels that %s selects, and does not belong to it: change its labels", set,
				source)
		case set.Status.Replicas == 0 && ptr.Deref(set.Spec.Replicas, 1) == 0:
		case holder != nil || set.DeletionTimestamp != nil:
			return nil, fmt.Errorf("%s has pods of %s, too: complete or undo its rollout first", source, set)
		default:
			holder = set
		}
	}
	return holder, nil
}

// Made returns why an existing target must not get the pods: nil for one that this command has made of the source as
// it is now, and that has not changed since.
func Made(target, want *Workload) error {
	switch {
	case target.Annotations[fromKey] == "":
		return fmt.Errorf("%s exists, and is not the one of an interrupted migration: delete it, or set --dst-name", target)
	case target.Annotations[fromKey] != want.Annotations[fromKey] ||
		target.Annotations[recordKey] != want.Annotations[recordKey] ||
		!equality.Semantic.DeepEqual(target.Spec, want.Spec):
		return fmt.Errorf("source and %s are not what they were when the migration began: "+
			"delete %[1]s with --cascade=orphan, and begin again", target)
	}
	return nil
}

// Handover is who has the pods, and who gets them.
type Handover struct {
	// Holder is the ReplicaSet or the StatefulSet that controls the pods.
	Holder types.UID
	// Key and Revision are the label of the pods of the latest template.
	Key, Revision string
	// Freed means that the source is deleted, so that pods may have no controller.
	Freed bool
	// Owner is the reference to the target, and Update the target's revision of the same template: empty before it
	// exists.
	Owner  metav1.OwnerReference
	Update string
}

// Marker is the annotation of the target.
func (h *Handover) Marker(source string) string {
	return strings.Join([]string{source, h.Revision, string(h.Holder)}, "/")
}

// Begun reads the annotation of a target, and reports whether the target takes pods of a source over.
func (h *Handover) Begun(marker, source string) bool {
	parts := strings.Split(marker, "/")
	if len(parts) != 3 || parts[0] != source {
		return false
	}
	h.Revision, h.Holder = parts[1], types.UID(parts[2])
	return true
}

// Fate is what happens to a pod. Where it does not change its owner, the text says why.
type Fate struct {
	Adopt   bool
	Refused error
	Text    string
}

// Fate returns what happens to a pod that the source selects.
func (h *Handover) Fate(pod *corev1.Pod) Fate {
	owner := metav1.GetControllerOf(pod)
	taken := owner != nil && owner.UID == h.Owner.UID
	held := owner != nil && owner.UID == h.Holder || owner == nil && h.Freed
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	latest := h.Revision != "" && pod.Labels[h.Key] == h.Revision
	refuse := func(text string, values ...any) Fate {
		return Fate{Refused: fmt.Errorf("pod %s "+text, append([]any{pod.Name}, values...)...)}
	}
	switch {
	case taken && (!latest || pod.Labels[kruise.PodRevisionLabelKey] == h.Update):
		return Fate{Text: "has changed its owner"}
	case owner == nil && !held:
		return refuse("has the selected labels and no controller: delete the pod, or change its labels")
	case !taken && !held:
		return refuse("has the selected labels and belongs to %s/%s: change its labels", owner.Kind, owner.Name)
	case finished:
		return Fate{Text: "has finished, and is left without a controller"}
	case pod.DeletionTimestamp != nil:
		return refuse("terminates: wait until it is gone")
	case !latest:
		return refuse("has an older template: complete or undo the rollout first")
	default:
		return Fate{Adopt: true, Text: "keeps running, and changes its owner"}
	}
}

// Adopt returns the operations that make a pod one of the target, at its update revision.
func (h *Handover) Adopt(pod *corev1.Pod, labels map[string]*string) []write.Op {
	others := slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(o metav1.OwnerReference) bool {
		return ptr.Deref(o.Controller, false)
	})
	const path = "/metadata/ownerReferences"
	ops := append(write.TestUID(pod), write.Test(path, pod.OwnerReferences)) // the garbage collector removes one, too
	labels = maps.Clone(labels)
	labels[kruise.PodRevisionLabelKey] = &h.Update
	ops = append(ops, write.SetLabels(pod, labels)...)
	return append(ops, write.Add(path, append(others, h.Owner)))
}

// Refusals returns why pods cannot change their owner.
func (h *Handover) Refusals(pods []*corev1.Pod) error {
	refusals := make([]error, len(pods))
	for i, pod := range pods {
		refusals[i] = h.Fate(pod).Refused
	}
	return errors.Join(refusals...)
}
