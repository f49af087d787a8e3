package sidecarset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
)

// snapshot is all that one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	// set as it is stored.
	set *v1beta1.SidecarSet
	// malformed says why nothing can be done with the spec.
	malformed error
	now       time.Time
	// pods that name the set, by namespace.
	pods map[string][]*corev1.Pod
	// namespaces are their labels, where the set asks for them.
	namespaces map[string]map[string]string
	// revisions of the set, oldest first.
	revisions []*appsv1.ControllerRevision
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	set, malformed, err := r.observeSet(ctx, types.NamespacedName{Name: name})
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, r.release(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	s := &snapshot{set: set, malformed: malformed, now: r.options.Now()}
	if malformed != nil {
		return s, nil //nolint:nilerr // the pass refuses the set
	}
	if set.DeletionTimestamp != nil {
		return nil, nil
	}
	if err := r.observePods(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeNamespaces(ctx, s); err != nil {
		return nil, err
	}
	return s, r.observeRevisions(ctx, s)
}

// observeSet reads the set as the last write of its status left it. Else a status that goes back to what the cache still shows
// would not be written.
func (r *Reconciler) observeSet(ctx context.Context, name types.NamespacedName) (set *v1beta1.SidecarSet, malformed, err error) {
	raw := stored.Untyped(gvk())
	if err := r.sets.Get(ctx, name, raw); err != nil {
		return nil, nil, err
	}
	latest, _, err := r.setWrites.Overlay(ctx, name, []*unstructured.Unstructured{raw})
	if err != nil {
		return nil, nil, err
	}
	return stored.Decode[v1beta1.SidecarSet](append(latest, raw)[0])
}

// forget drops the writes of a set that is gone.
func (r *Reconciler) forget(name string) {
	r.memory.forget(name)
	r.setWrites.Forget(types.NamespacedName{Name: name})
	r.revisionWrites.Forget(types.NamespacedName{Name: name})
}

func (r *Reconciler) observePods(ctx context.Context, s *snapshot) error {
	cached, err := r.podsOf(ctx, s.set.Name)
	if err != nil {
		return err
	}
	s.pods = map[string][]*corev1.Pod{}
	for _, pod := range cached {
		s.pods[pod.Namespace] = append(s.pods[pod.Namespace], pod)
	}
	writes := r.memory.writes(s.set.Name, r)
	for namespace, pods := range s.pods {
		all, _, err := writes.Overlay(ctx, types.NamespacedName{Namespace: namespace}, pods)
		if err != nil {
			return err
		}
		s.pods[namespace] = all
	}
	return nil
}

// podsOf are the pods that name a set, as the cache has them.
func (r *Reconciler) podsOf(ctx context.Context, set string) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.MatchingFields{podField: set}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// all are the pods of all namespaces.
func (s *snapshot) all() []*corev1.Pod {
	return slices.Concat(slices.Collect(maps.Values(s.pods))...)
}

// observeNamespaces reads the labels of namespaces where the set asks for more of them than their names.
func (r *Reconciler) observeNamespaces(ctx context.Context, s *snapshot) error {
	if !asksForLabels(s.set.Spec.NamespaceSelector) {
		return nil
	}
	s.namespaces = map[string]map[string]string{}
	for name := range s.pods {
		namespace := namespaceOf(name)
		switch err := r.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); {
		case apierrors.IsNotFound(err):
			// Its pods are about to go, too.
		case err != nil:
			return fmt.Errorf("get namespace %s: %w", name, err)
		default:
			s.namespaces[name] = namespace.Labels
		}
	}
	return nil
}

// asksForLabels says whether a selector of namespaces looks at other labels than their names.
func asksForLabels(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	for key := range selector.MatchLabels {
		if key != corev1.LabelMetadataName {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Key != corev1.LabelMetadataName
	})
}

func namespaceOf(name string) *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.Name = name
	return namespace
}

func (r *Reconciler) observeRevisions(ctx context.Context, s *snapshot) error {
	var list appsv1.ControllerRevisionList
	err := r.client.List(ctx, &list, client.InNamespace(r.options.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{v1beta1.SidecarSetNameLabel: s.set.Name})
	if err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	cached := make([]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		cached[i] = &list.Items[i]
	}
	all, _, err := r.revisionWrites.Overlay(ctx, types.NamespacedName{Name: s.set.Name}, cached)
	if err != nil {
		return err
	}
	s.revisions = slices.DeleteFunc(slices.Clone(all), func(rev *appsv1.ControllerRevision) bool {
		ref := metav1.GetControllerOfNoCopy(rev)
		return ref != nil && ref.UID != s.set.UID
	})
	revision.Sort(s.revisions)
	return nil
}
