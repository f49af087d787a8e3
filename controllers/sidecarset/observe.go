package sidecarset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
)

// snapshot is the input of one pass. Its objects may belong to the cache and are only read.
type snapshot struct {
	// set as it is stored.
	set *set
	// malformed is the error of a set that cannot be decoded.
	malformed error
	now       time.Time
	// pods that record the set.
	pods []*corev1.Pod
	// namespaces are the labels of their namespaces, if the set selects by them.
	namespaces map[string]map[string]string
	// history are the revisions of the set, oldest first.
	history []*appsv1.ControllerRevision
	// held are the pods whose update was refused, and the time until which other pods take their turn.
	held map[types.UID]time.Time
	// recheckAfter is when to read the set and its revisions again because the cache does not show a write; zero for
	// never.
	recheckAfter time.Duration
}

type set = v1beta1.SidecarSet

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return types.NamespacedName{Name: s.set.Name} }

// observe returns the snapshot; nil for a set that is gone.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	// As the last write of the status left it: else a status that returns to the one in the cache would not be written.
	latest, err := r.sets.Latest(ctx, r.api.Cached, types.NamespacedName{Name: name})
	if err != nil {
		return nil, err
	}
	if latest.Object == nil {
		return nil, nil
	}
	object, malformed, err := stored.Decode[set](latest.Object)
	if err != nil {
		return nil, err
	}
	s := &snapshot{
		set: object, malformed: malformed, now: r.api.Now(), recheckAfter: latest.RecheckAfter,
		held: r.memory.Recall(name).held,
	}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	if object.DeletionTimestamp != nil {
		return s, nil
	}
	if err := r.observePods(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeNamespaces(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observeRevisions(ctx, s)
}

// forget drops the writes of a set that is gone.
func (r *Reconciler) forget(name string) {
	r.memory.Forget(name)
	r.failures.Forget(name)
	r.meters.lacking.DeleteLabelValues(name)
	r.meters.stands(name, false)
	r.sets.Writes.Forget(types.NamespacedName{Name: name})
	r.revisions.Forget(types.NamespacedName{Name: name})
	r.pods.Forget(types.NamespacedName{Name: name})
}

func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	cached, err := r.podsOf(ctx, s.set.Name)
	if err != nil {
		return err
	}
	pods, recheckAfter, err := r.pods.Overlay(ctx, s.key(), cached)
	s.pods, s.recheckAfter = pods, passes.Sooner(s.recheckAfter, recheckAfter)
	return err
}

// podsOf returns the pods that record a set, from the cache.
func (r *Reconciler) podsOf(ctx context.Context, name string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.api.Client.List(ctx, &list, client.MatchingFields{podField: name},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return stored.Pointers(list.Items), nil
}

// observeNamespaces reads the labels of the namespaces of pods, if the set selects by them.
func (r *Reconciler) observeNamespaces(ctx context.Context, s *snapshot) error {
	if s.set.Spec.NamespaceSelector == nil {
		return nil
	}
	names := map[string]bool{}
	for _, pod := range s.pods {
		names[pod.Namespace] = true
	}
	s.namespaces = map[string]map[string]string{}
	for name := range names {
		namespace, err := stored.Metadata(ctx, r.api.Client, corev1.SchemeGroupVersion.WithKind("Namespace"),
			types.NamespacedName{Name: name})
		if err != nil {
			return err
		}
		if namespace != nil { // else its pods are about to be deleted
			s.namespaces[name] = namespace.Labels
		}
	}
	return nil
}

func (r *Reconciler) observeRevisions(ctx context.Context, s *snapshot) error {
	var list appsv1.ControllerRevisionList
	err := r.api.Client.List(ctx, &list, client.InNamespace(r.options.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{v1beta1.SidecarSetNameLabel: s.set.Name})
	if err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	all, recheckAfter, err := r.revisions.Overlay(ctx, s.key(), stored.Pointers(list.Items))
	if err != nil {
		return err
	}
	s.recheckAfter = passes.Sooner(s.recheckAfter, recheckAfter)
	s.history = slices.DeleteFunc(slices.Clone(all), func(rev *appsv1.ControllerRevision) bool {
		return metav1.GetControllerOfNoCopy(rev) != nil && !owned.Controls(s.set, rev)
	})
	revision.Sort(s.history)
	return nil
}

// state is what is known of a set, which has one pass at a time, and what the API server does not store. It may be lost
// at any time.
type state struct {
	// held are the pods whose update was refused, and the time until which other pods take their turn.
	held map[types.UID]time.Time
	// step identifies the progress of updates that wait, and since is when it was made. stalled is the generation of which
	// an event reported no progress.
	step    string
	since   time.Time
	stalled int64
	// judged is the generation whose faults were emitted, and lacking reports that missing containers were.
	judged  int64
	lacking bool
	// took is how long the last pass took to observe and to plan.
	took time.Duration
}

// progress notes the step of updates that wait, and returns for how long they may still wait; zero where none wait.
func (s *state) progress(step string, now time.Time, limit time.Duration) (left time.Duration) {
	if s.step != step {
		s.step, s.since = step, now
	}
	if step == "" {
		return 0
	}
	return s.since.Add(limit).Sub(now)
}
