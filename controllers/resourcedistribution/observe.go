package resourcedistribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/distribution"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot holds what one reconcile read. Its objects may belong to the cache and are only read.
type snapshot struct {
	object *resourceDistribution
	// targets and resource are nil where they are invalid, for the reason invalid.
	targets  *distribution.Targets
	resource *resource
	invalid  string
	// unreadable is why the copies cannot be read; empty where they can.
	unreadable string
	// namespaces are all, and copies the objects that have the kind and the name of the resource, by namespace.
	namespaces []metadata
	copies     map[string]*metadata
	// known is what the last pass found out, by namespace.
	known map[string]known
	now   time.Time
	// recheckAfter is when to read the copies again.
	recheckAfter time.Duration
}

// observe reads the snapshot. It returns nil where there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name string) (*snapshot, error) {
	latest, err := r.distributions.Latest(ctx, r.api.Cached, types.NamespacedName{Name: name})
	if err != nil {
		return nil, err
	}
	if latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil {
		r.forget(name, latest.Cached) // garbage collection deletes the copies
		return nil, nil
	}
	s := &snapshot{known: r.known.Recall(name), now: r.api.Now()}
	var malformed error
	if s.object, malformed, err = stored.Decode[resourceDistribution](latest.Object); err != nil {
		return nil, err
	}
	if err := s.read(malformed, r.options.Namespace); err != nil {
		s.invalid = failure.BriefText(err.Error())
	}
	if s.namespaces, err = list(ctx, r.api.Cached, corev1.SchemeGroupVersion.WithKind("Namespace")); err != nil {
		return nil, err
	}
	return s, r.observeCopies(ctx, s)
}

// read reads the spec. It returns what is invalid. A reserved namespace that is listed is skipped.
func (s *snapshot) read(malformed error, reserved string) (err error) {
	if malformed != nil {
		return malformed
	}
	if s.targets, err = distribution.Select(s.object.Spec.Targets, reserved); err != nil {
		return fmt.Errorf("spec.targets: %w", err)
	}
	if faults := distribution.Validate(s.object, ""); len(faults) > 0 {
		return faults[0]
	}
	s.resource, err = newResource(s.object)
	return err
}

// newResource reads the resource of a distribution. Annotations of the reconciler belong to no resource.
func newResource(owner *resourceDistribution) (*resource, error) {
	object, err := distribution.Read(owner.Spec.Resource.Raw)
	if err != nil {
		return nil, err
	}
	for _, own := range []string{
		v1beta1.ResourceDistributionHashAnnotation, v1beta1.ResourceDistributionFromAnnotation, keysAnnotation,
	} {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", own)
	}
	sum := sha256.Sum256(owner.Spec.Resource.Raw)
	return &resource{Unstructured: object, owner: owner, hash: hex.EncodeToString(sum[:])}, nil
}

// forget drops what is known of a distribution that is gone or terminates.
func (r *Reconciler) forget(name string, cached bool) {
	r.known.Forget(name)
	r.emitted.Forget(name)
	r.confirmed.Forget(types.NamespacedName{Name: name})
	if !cached {
		r.distributions.Writes.Forget(types.NamespacedName{Name: name})
	}
}

// list returns the metadata of the objects of a kind, which may be those of the cache.
func list(ctx context.Context, from client.Reader, kind schema.GroupVersionKind) ([]metadata, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := from.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list metadata of %s: %w", kind.Kind, err)
	}
	return all.Items, nil
}

// observeCopies reads the metadata of the copies.
func (r *Reconciler) observeCopies(ctx context.Context, s *snapshot) error {
	if s.resource == nil {
		return nil
	}
	what := watched{kind: s.resource.GroupVersionKind(), name: s.resource.GetName()}
	reader, err := r.watches.use(ctx, what, s.object.Name)
	switch {
	case err != nil:
		s.unreadable, s.recheckAfter = failure.BriefText(err.Error()), retryUnreadable
		return nil
	case reader == nil:
		s.recheckAfter = retryUnsynced
		return nil
	}
	all, err := list(ctx, reader, what.kind)
	if err != nil {
		return err
	}
	s.copies = map[string]*metadata{}
	for i := range all {
		if all[i].Name == what.name { // a client in the place of a cache has others as well
			s.copies[all[i].Namespace] = &all[i]
		}
	}
	return nil
}

// unsynced reports whether the copies are not cached yet.
func (s *snapshot) unsynced() bool { return s.resource != nil && s.unreadable == "" && s.copies == nil }
