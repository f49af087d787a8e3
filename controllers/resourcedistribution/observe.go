package resourcedistribution

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// snapshot is what one pass looks at.
type snapshot struct {
	object *resourceDistribution
	input  distribution.Input
	// recheckAfter is when to look again where the cache lacks an own write.
	recheckAfter time.Duration
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	latest, err := r.distributions.Latest(ctx, r.api.Cached, types.NamespacedName{Name: name})
	if err != nil {
		return nil, err
	}
	if latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil {
		r.forget(name, latest.Cached) // garbage collection removes the copies
		return nil, nil
	}
	object, malformed, err := stored.Decode[resourceDistribution](latest.Object)
	if err != nil {
		return nil, err
	}
	s := &snapshot{object: object}
	s.input = distribution.Input{
		Owner: distribution.Owner{Name: object.Name, UID: object.UID}, Known: r.known.Recall(name), Now: r.api.Now(),
	}
	if err := s.read(malformed, r.options.Namespace); err != nil {
		return nil, err
	}
	r.targets.set(name, s.input.Targets)
	if s.input.Namespaces, err = r.namespaces(ctx); err != nil {
		return nil, err
	}
	pending, err := r.observeCopies(ctx, s)
	if pending {
		return nil, err // the filled cache requeues
	}
	return s, err
}

// read reads the spec. What the webhook rejects is not distributed, but for a target that is reserved: it is skipped.
func (s *snapshot) read(malformed error, reserved string) error {
	if malformed != nil {
		s.input.Invalid = failure.BriefText(malformed.Error())
		return nil
	}
	var err error
	if s.input.Targets, err = distribution.Select(s.object.Spec.Targets, reserved); err != nil {
		s.input.Invalid = failure.BriefText("spec.targets: " + err.Error())
		return nil //nolint:nilerr // the status reports it
	}
	if faults := distribution.Validate(s.object); len(faults) > 0 {
		s.input.Invalid = failure.BriefText(faults[0].Error())
		return nil
	}
	s.input.Resource, err = distribution.Read(s.object.Spec.Resource.Raw)
	return err
}

// forget drops what is known of a distribution that is gone or terminates.
func (r *Reconciler) forget(name string, cached bool) {
	for _, what := range r.watches.release(name) {
		for namespace := range r.known.Recall(name) {
			r.copies.Forget(what.in(namespace))
		}
	}
	r.targets.drop(name)
	r.known.Forget(name)
	r.emitted.Forget(name)
	r.confirmed.Forget(types.NamespacedName{Name: name})
	if !cached {
		r.distributions.Writes.Forget(types.NamespacedName{Name: name})
	}
}

// namespaces lists the metadata of all namespaces. Labels are those of the cache, and only read.
func (r *Reconciler) namespaces(ctx context.Context) ([]distribution.Namespace, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.api.Cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	all := make([]distribution.Namespace, len(list.Items))
	for i := range list.Items {
		n := &list.Items[i]
		all[i] = distribution.Namespace{Name: n.Name, Labels: n.Labels, Terminating: n.DeletionTimestamp != nil}
	}
	return all, nil
}

// observeCopies reads the metadata of the copies, as the own writes left them. Pending reports a cache that is not
// filled yet.
func (r *Reconciler) observeCopies(ctx context.Context, s *snapshot) (pending bool, err error) {
	if s.input.Resource == nil {
		r.watches.release(s.object.Name)
		return false, nil
	}
	what := watched{kind: s.input.Resource.Kind, name: s.input.Resource.Name}
	reader, err := r.watches.use(ctx, what, s.object.Name)
	switch {
	case err != nil:
		s.input.Unreadable = failure.BriefText(err.Error())
		return false, nil
	case reader == nil:
		return true, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(what.kind.GroupVersion().WithKind(what.kind.Kind + "List"))
	if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list copies: %w", err)
	}
	cached := make(map[string]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		if list.Items[i].Name == what.name { // a client in the place of a cache has others as well
			cached[list.Items[i].Namespace] = &list.Items[i]
		}
	}
	s.input.Copies = make(map[string]distribution.Copy, len(cached))
	for i := range s.input.Namespaces {
		namespace := s.input.Namespaces[i].Name
		r.observeCopy(ctx, s, what.in(namespace), cached[namespace])
	}
	return false, nil
}

// observeCopy adds the copy of a namespace, if there is one. Where an own write cannot be confirmed the cache decides:
// each write tests what it was decided upon.
func (r *Reconciler) observeCopy(
	ctx context.Context, s *snapshot, key types.NamespacedName, cached *metav1.PartialObjectMetadata,
) {
	var all []*metav1.PartialObjectMetadata
	if cached != nil {
		all = append(all, cached)
	}
	latest, after, err := r.copies.Overlay(ctx, key, all)
	if err != nil {
		latest = all
	}
	s.recheckAfter = requeue.Sooner(s.recheckAfter, after)
	for _, is := range latest {
		s.input.Copies[key.Namespace] = distribution.Copy{
			UID:        is.UID,
			Version:    is.ResourceVersion,
			Controlled: s.input.Owner.Controls(is),
			Deleting:   is.DeletionTimestamp != nil,
		}
	}
}

// watched is a kind and a name.
type watched struct {
	kind schema.GroupVersionKind
	name string
}

// in is the key of the own writes in a namespace.
func (w watched) in(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: w.kind.Kind + "/" + w.name}
}

// copies are the own writes of copies, by namespace, kind and name. Of an answer it keeps what a pass looks at.
type copies struct {
	*ledger.Ledger[*metav1.PartialObjectMetadata]
}

// Record takes the answer to a write of a copy.
func (c copies) Record(_ types.NamespacedName, w *write.Write, answer write.Object, err error) {
	kind := w.Object.GetObjectKind().GroupVersionKind()
	switch w.Object.(type) {
	case *corev1.Secret:
		kind = corev1.SchemeGroupVersion.WithKind(distribution.KindSecret)
	case *corev1.ConfigMap:
		kind = corev1.SchemeGroupVersion.WithKind(distribution.KindConfigMap)
	case *metav1.PartialObjectMetadata:
	default:
		return
	}
	name := types.NamespacedName{Namespace: w.Object.GetNamespace(), Name: w.Object.GetName()}
	known := &write.Write{Verb: w.Verb, Object: lean(stored.MetadataOf(kind, name), w.Object)}
	if answer != nil {
		answer = lean(stored.MetadataOf(kind, name), answer)
	}
	c.Ledger.Record(watched{kind: kind, name: name.Name}.in(name.Namespace), known, answer, err)
}

// lean fills metadata with what a pass looks at.
func lean(meta *metav1.PartialObjectMetadata, from metav1.Object) *metav1.PartialObjectMetadata {
	controller := metav1.GetControllerOf(from)
	meta.UID, meta.ResourceVersion, meta.DeletionTimestamp = from.GetUID(), from.GetResourceVersion(),
		from.GetDeletionTimestamp()
	meta.OwnerReferences = nil
	if controller != nil {
		meta.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return meta
}
