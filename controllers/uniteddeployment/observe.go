package uniteddeployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/subsets"
	"github.com/kruisekit/kruisekit/spread"
)

// snapshot is all that one pass looks at. Objects in it may be those of the cache, and are only read.
type snapshot struct {
	// object with its defaults.
	object *v1beta1.UnitedDeployment
	// invalid is why nothing can be done with the spec.
	invalid  error
	now      time.Time
	selector string
	mode     spread.Mode
	windows  spread.Windows

	template *subsets.Template
	// children are the workloads of the kind of the template, by subset.
	children map[string]*subsets.Child
	// surplus are workloads that no subset has: of subsets that were removed, of another kind, or a second one.
	surplus   []*subsets.Child
	revisions []*appsv1.ControllerRevision
	// pods of the subsets whose pods matter in this pass.
	pods map[string][]*corev1.Pod

	recheckAfter time.Duration
	known        knowledge
}

// knowledge is what is known beside what the API server stores. It may be lost at any time.
type knowledge struct {
	// writes are the last ones of each workload, by its name.
	writes map[string]lastWrite
	// labelled are the counts of each workload all of whose pods had their label of reservation.
	labelled map[string]string
}

// lastWrite is the last write of a workload.
type lastWrite struct {
	content    string
	generation int64
	at         time.Time
	// repeats counts the writes of the same content before.
	repeats int
}

func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.object) }

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.objects.Latest(ctx, r.api.Cached, name)
	if err != nil {
		return nil, err
	}
	if !latest.Cached {
		r.forget(name)
	}
	if latest.Object == nil || !latest.Cached || latest.Object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	object, malformed, err := stored.Decode[v1beta1.UnitedDeployment](latest.Object)
	if err != nil {
		return nil, err
	}
	s := &snapshot{object: object, now: r.api.Now(), invalid: malformed, known: r.memory.Recall(name), recheckAfter: latest.RecheckAfter}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass reports it
	}
	object.Default()
	if s.invalid = r.check(s); s.invalid != nil {
		return s, nil //nolint:nilerr // the pass reports it
	}
	if err := r.observeChildren(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeRevisions(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observePods(ctx, s)
}

func (r *Reconciler) forget(name types.NamespacedName) {
	r.objects.Writes.Forget(name)
	r.history.Writes.Forget(name)
	for _, writes := range r.children {
		writes.Forget(name)
	}
	r.memory.Forget(name)
	for _, about := range emissions() {
		r.emitted.Forget(emission{name, about})
	}
}

// observeChildren finds the workloads that the object controls.
func (r *Reconciler) observeChildren(ctx context.Context, s *snapshot) error {
	s.children = map[string]*subsets.Child{}
	wanted := map[string]bool{}
	for i := range s.object.Spec.Topology.Subsets {
		wanted[s.object.Spec.Topology.Subsets[i].Name] = true
	}
	for _, kind := range subsets.Kinds() {
		writes := r.children[kind]
		if writes == nil {
			continue
		}
		cached, err := stored.List(ctx, r.api.Cached, kind, owned.In(s.object.Namespace, s.object.UID)...)
		if err != nil {
			return err
		}
		objects, recheckAfter, err := writes.Overlay(ctx, s.key(), cached)
		if err != nil {
			return fmt.Errorf("read %s: %w", kind.Kind, err)
		}
		s.recheckAfter = requeue.Sooner(s.recheckAfter, recheckAfter)
		for _, o := range best(objects) {
			if !owned.Controls(s.object, o) {
				continue
			}
			child := subsets.Observe(kind, o)
			if kind == s.template.Kind && wanted[child.Subset] && s.children[child.Subset] == nil {
				s.children[child.Subset] = child
			} else {
				s.surplus = append(s.surplus, child)
			}
		}
	}
	return nil
}

// best orders workloads: of two for one subset the one with more ready pods stays, and of equals the older one.
func best(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	rank := func(o *unstructured.Unstructured) (ready int64) {
		if o.GetDeletionTimestamp() != nil {
			return -1
		}
		ready, _, _ = unstructured.NestedInt64(o.Object, "status", "readyReplicas")
		return ready
	}
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int {
		x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(cmp.Compare(rank(b), rank(a)), x.Compare(y.Time), cmp.Compare(a.GetName(), b.GetName()))
	})
	return sorted
}

func (r *Reconciler) observeRevisions(ctx context.Context, s *snapshot) error {
	var list appsv1.ControllerRevisionList
	options := append(owned.In(s.object.Namespace, s.object.UID), client.UnsafeDisableDeepCopy)
	if err := r.api.Client.List(ctx, &list, options...); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	all, recheckAfter, err := r.history.Writes.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err != nil {
		return fmt.Errorf("read revisions: %w", err)
	}
	s.recheckAfter = requeue.Sooner(s.recheckAfter, recheckAfter)
	s.revisions = slices.DeleteFunc(slices.Clone(all), func(rev *appsv1.ControllerRevision) bool { return !metav1.IsControlledBy(rev, s.object) })
	return nil
}

// observePods reads the pods of subsets about which the workload alone does not say enough.
func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	s.pods = map[string][]*corev1.Pod{}
	for subset, child := range s.children {
		if !s.needsPods(child) {
			continue
		}
		var list corev1.PodList
		err := r.api.Client.List(ctx, &list, client.InNamespace(s.object.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingFields{podField: subsetKey(s.object.Name, subset)})
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		s.pods[subset] = slices.DeleteFunc(stored.Pointers(list.Items), func(pod *corev1.Pod) bool { return !child.Owns(pod) })
	}
	return nil
}

func (s *snapshot) needsPods(child *subsets.Child) bool {
	switch {
	case child.Stuck():
		return true
	case s.mode == spread.Adaptive:
		return child.Ready < max(child.Replicas, child.Pods)
	case s.mode == spread.Reserving:
		now := counts(child)
		return now == "" || now != s.known.labelled[child.Object.GetName()] || s.conditionOf(child.Subset).Unschedulable()
	}
	return false
}

// counts change with each pod that a workload creates, and that becomes ready or updated. They are empty as long as some pods are not.
func counts(c *subsets.Child) string {
	if c.Ready < max(c.Replicas, c.Pods) || c.Updated < c.Pods {
		return ""
	}
	return fmt.Sprint(c.Object.GetUID(), c.Object.GetGeneration(), c.Observed, c.Pods, c.Ready, c.Updated)
}

// conditionOf returns the condition Schedulable of a subset, as the status has it.
func (s *snapshot) conditionOf(subset string) spread.Condition {
	for _, status := range s.object.Status.SubsetStatuses {
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
	if s.mode == spread.Reserving && len(s.object.Status.SubsetStatuses) > 0 {
		return spread.Condition{Status: corev1.ConditionFalse, Reason: spread.ReasonCreated, Since: s.now}
	}
	return spread.Condition{}
}
