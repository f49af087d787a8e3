package subsets

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/spread"
)

// Snapshot is all that one pass over a UnitedDeployment looks at. Objects in it may be those of the cache, and are only
// read.
type Snapshot struct {
	// Object with its defaults.
	Object   *v1beta1.UnitedDeployment
	Now      time.Time
	Template *Template
	Selector string
	Mode     spread.Mode
	Windows  spread.Windows

	// Children are the workloads of the kind of the template, by subset.
	Children map[string]*Child
	// Surplus are workloads that no subset has: of subsets that were removed, of another kind, or a second one.
	Surplus   []*Child
	Revisions []*appsv1.ControllerRevision
	// Pods of the subsets whose pods matter in this pass, by subset.
	Pods map[string][]*corev1.Pod
}

// Read returns a snapshot with the spec of an object that has its defaults. The error says why nothing can be done with
// the spec; the snapshot then has the object alone. Other faults have a safe reading.
func Read(object *v1beta1.UnitedDeployment, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Object: object, Now: now, Children: map[string]*Child{}, Pods: map[string][]*corev1.Pod{}}
	if fault := validation.UnitedDeploymentUnusable(object); fault != nil {
		return s, failure.Brief(fault)
	}
	selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil {
		return s, fmt.Errorf("spec.selector: %w", err)
	}
	s.Selector = selector.String()
	s.Template = &Template{validation.Templates(&object.Spec.Template)[0]}
	s.schedulesAs(&object.Spec.Topology.ScheduleStrategy)
	return s, nil
}

// schedulesAs reads the schedule strategy. Reservation with a StatefulSet counts as Adaptive without.
func (s *Snapshot) schedulesAs(strategy *v1beta1.UnitedDeploymentScheduleStrategy) {
	if strategy.Type != v1beta1.AdaptiveUnitedDeploymentScheduleStrategyType {
		return
	}
	adaptive := ptr.Deref(strategy.Adaptive, v1beta1.AdaptiveUnitedDeploymentStrategy{})
	s.Mode = spread.Adaptive
	if adaptive.ReserveUnschedulablePods && s.Template.Reserves() {
		s.Mode = spread.Reserving
	}
	seconds := func(n *int32, otherwise, least int32) time.Duration {
		return time.Duration(max(ptr.Deref(n, otherwise), least)) * time.Second
	}
	s.Windows = spread.Windows{
		Critical:      seconds(adaptive.RescheduleCriticalSeconds, v1beta1.DefaultRescheduleCriticalSeconds, 0),
		Unschedulable: seconds(adaptive.UnschedulableDuration, v1beta1.DefaultUnschedulableDurationSeconds, 1),
	}
}

// Add adds the workloads of a kind that the object controls. Of two for one subset the one with more ready pods stays,
// and of equals the older one.
func (s *Snapshot) Add(kind schema.GroupVersionKind, workloads []*unstructured.Unstructured) {
	for _, o := range bestFirst(workloads) {
		if !owned.Controls(s.Object, o) {
			continue
		}
		child := Observe(kind, o)
		if kind == s.Template.Kind && s.Children[child.Subset] == nil && s.wants(child.Subset) {
			s.Children[child.Subset] = child
		} else {
			s.Surplus = append(s.Surplus, child)
		}
	}
}

// Lean removes, from a workload that no UnitedDeployment controls, what does not identify the workload and its owners:
// Add does not look at more. It is for caches.
func Lean(workload *unstructured.Unstructured) {
	if ref := metav1.GetControllerOfNoCopy(workload); ref != nil && ref.Kind == OwnerKind().Kind {
		return
	}
	metadata, _ := workload.Object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "ownerReferences"} {
		if value, ok := metadata[key]; ok {
			kept[key] = value
		}
	}
	workload.Object = map[string]any{
		"apiVersion": workload.Object["apiVersion"], "kind": workload.Object["kind"], "metadata": kept,
	}
}

func (s *Snapshot) wants(subset string) bool {
	return slices.ContainsFunc(s.Object.Spec.Topology.Subsets, func(t v1beta1.Subset) bool { return t.Name == subset })
}

func bestFirst(workloads []*unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := slices.Clone(workloads)
	rank := func(o *unstructured.Unstructured) int32 {
		if o.GetDeletionTimestamp() != nil {
			return -1
		}
		return number(o, "status", "readyReplicas")
	}
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int {
		x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(cmp.Compare(rank(b), rank(a)), x.Compare(y.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return sorted
}

// NeedsPods reports whether a pass must look at the pods of a workload, because the workload alone does not say enough.
func (s *Snapshot) NeedsPods(child *Child) bool {
	return child.Stuck() || s.Mode == spread.Reserving ||
		s.Mode == spread.Adaptive && child.Ready < max(child.Replicas, child.Pods)
}

// conditionOf returns the condition Schedulable of a subset, as the status has it.
func (s *Snapshot) conditionOf(subset string) spread.Condition {
	for _, status := range s.Object.Status.SubsetStatuses {
		if status.Name != subset {
			continue
		}
		for _, c := range status.Conditions {
			if c.Type == v1beta1.UnitedDeploymentSubsetSchedulable {
				return spread.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
			}
		}
		return spread.Condition{}
	}
	if s.Mode == spread.Reserving && len(s.Object.Status.SubsetStatuses) > 0 {
		return spread.Condition{Status: corev1.ConditionFalse, Reason: spread.ReasonCreated, Since: s.Now}
	}
	return spread.Condition{}
}

// marked reports whether the subset was unschedulable before this pass.
func (s *Snapshot) marked(subset string) bool { return s.conditionOf(subset).Unschedulable() }

func (s *Snapshot) partitions() map[string]int32 {
	if manual := s.Object.Spec.UpdateStrategy.ManualUpdate; manual != nil {
		return manual.Partitions
	}
	return nil
}
