package cloneset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	// set with its defaults.
	set      *v1beta1.CloneSet
	selector labels.Selector
	// invalid is why nothing can be done with the spec.
	invalid error
	now     time.Time
	// pods that are owned, selected, and neither finished nor terminating, by name.
	pods []*corev1.Pod
	// inactive are the owned pods that are finished or terminating.
	inactive []*corev1.Pod
	// strays are owned and no longer selected.
	strays []*corev1.Pod
	// claims that are owned and not terminating.
	claims []*corev1.PersistentVolumeClaim
	// revisions that are owned, oldest first.
	revisions []*appsv1.ControllerRevision
	// jobs that pull images ahead and are not terminating.
	jobs []*metav1.PartialObjectMetadata
	// recheckAfter is when to look again where a cache lacks what was created; zero where none does.
	recheckAfter time.Duration
	// nodes by name, where the template spreads pods.
	nodes map[string]map[string]string
	// pendingCreates are the ids of pods whose creation was planned before, and has not succeeded.
	pendingCreates []string
	// repeats are the recent writes of pods.
	repeats workload.Repeats
	// verified means that the pods were read past the cache since the process started.
	verified bool
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	set, malformed, err := stored.Read[v1beta1.CloneSet](ctx, r.api.Cached, gvk(), name)
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &snapshot{set: set, now: r.api.Now(), invalid: malformed}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	s.set.Default()
	if s.selector, err = metav1.LabelSelectorAsSelector(s.set.Spec.Selector); err != nil {
		s.invalid = fmt.Errorf("spec.selector: %w", err)
		return s, nil
	}
	known := r.memory.recall(s.key())
	s.verified, s.pendingCreates, s.repeats = known.verified == set.UID, slices.Sorted(maps.Keys(known.pending)), known.repeats
	if err := r.observePods(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeClaims(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeRevisions(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeJobs(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observeNodes(ctx, s)
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.set) }

func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	if err := r.list(ctx, s, &list); err != nil {
		return err
	}
	all, err := controlled(ctx, s, r.podWrites, list.Items)
	if err != nil {
		return err
	}
	s.pods = make([]*corev1.Pod, 0, len(all))
	for _, pod := range all {
		s.classify(pod)
	}
	slices.SortFunc(s.pods, func(a, b *corev1.Pod) int { return compareNames(a, b) })
	return nil
}

// classify adds a pod to those that are active, inactive or no longer selected.
func (s *snapshot) classify(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil || isFinished(pod):
		s.inactive = append(s.inactive, pod)
	case !s.selector.Matches(labels.Set(pod.Labels)) && s.set.DeletionTimestamp == nil:
		s.strays = append(s.strays, pod)
	default:
		s.pods = append(s.pods, pod)
	}
}

func (r *Reconciler) observeClaims(ctx context.Context, s *snapshot) error {
	var list corev1.PersistentVolumeClaimList
	if err := r.list(ctx, s, &list); err != nil {
		return err
	}
	all, err := controlled(ctx, s, r.claimWrites, list.Items)
	if err != nil {
		return err
	}
	s.claims = slices.DeleteFunc(all, func(claim *corev1.PersistentVolumeClaim) bool { return claim.DeletionTimestamp != nil })
	slices.SortFunc(s.claims, func(a, b *corev1.PersistentVolumeClaim) int { return compareNames(a, b) })
	return nil
}

func (r *Reconciler) observeRevisions(ctx context.Context, s *snapshot) (err error) {
	var list appsv1.ControllerRevisionList
	if err := r.list(ctx, s, &list); err != nil {
		return err
	}
	s.revisions, err = controlled(ctx, s, r.revisionWrites, list.Items)
	revision.Sort(s.revisions)
	return err
}

// observeNodes reads the labels of the pods' nodes where the template spreads pods over them.
func (r *Reconciler) observeNodes(ctx context.Context, s *snapshot) error {
	if len(s.set.Spec.Template.Spec.TopologySpreadConstraints) == 0 || int32(len(s.pods)) <= *s.set.Spec.Replicas {
		return nil
	}
	s.nodes = map[string]map[string]string{}
	for _, pod := range s.pods {
		name := pod.Spec.NodeName
		if _, known := s.nodes[name]; known || name == "" {
			continue
		}
		var node corev1.Node
		switch err := r.api.Client.Get(ctx, types.NamespacedName{Name: name}, &node); {
		case apierrors.IsNotFound(err):
			s.nodes[name] = nil
		case err != nil:
			return fmt.Errorf("get node %s: %w", name, err)
		default:
			s.nodes[name] = node.Labels
		}
	}
	return nil
}

// list reads the objects of a kind that refer to the set as their owner. They are the cache's.
func (r *Reconciler) list(ctx context.Context, s *snapshot, into client.ObjectList) error {
	if err := r.api.Client.List(ctx, into, append(owned.In(s.set.Namespace, s.set.UID), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("read %T: %w", into, err)
	}
	return nil
}

// controlled are those of some objects that the set controls, as they are after the own writes.
func controlled[T any, P interface {
	*T
	client.Object
}](ctx context.Context, s *snapshot, writes *ledger.Ledger[P], items []T) ([]P, error) {
	cached := make([]P, len(items))
	for i := range items {
		cached[i] = &items[i]
	}
	all, recheckAfter, err := writes.Overlay(ctx, s.key(), cached)
	s.recheckAfter = requeue.Sooner(s.recheckAfter, recheckAfter)
	return slices.DeleteFunc(all, func(object P) bool { return !owned.Controls(s.set, object) }), err
}

func compareNames(a, b metav1.Object) int { return strings.Compare(a.GetName(), b.GetName()) }

// verifyPods reads, before the first creation for a set, the pods of the set past the cache, and adds those that the cache
// lacks. An earlier process, or an earlier leader, may have created them a moment ago, and no ledger knows.
func (r *Reconciler) verifyPods(ctx context.Context, s *snapshot) error {
	var list corev1.PodList
	err := r.api.Live.List(ctx, &list, client.InNamespace(s.set.Namespace), client.MatchingLabelsSelector{Selector: s.selector})
	if err != nil {
		return fmt.Errorf("list pods past the cache: %w", err)
	}
	known := map[types.UID]bool{}
	for _, pod := range slices.Concat(s.pods, s.inactive, s.strays) {
		known[pod.UID] = true
	}
	for i := range list.Items {
		if pod := &list.Items[i]; !known[pod.UID] && owned.Controls(s.set, pod) {
			r.podWrites.Created(s.key(), pod)
			s.classify(pod)
		}
	}
	r.memory.note(s.key(), func(k *knowledge) { k.verified = s.set.UID })
	s.verified = true
	slices.SortFunc(s.pods, func(a, b *corev1.Pod) int { return compareNames(a, b) })
	return nil
}
