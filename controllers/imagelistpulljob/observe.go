package imagelistpulljob

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is all that one pass looks at, as it is after the own writes.
type snapshot struct {
	// list with its defaults.
	list *v1beta1.ImageListPullJob
	// invalid is why nothing can be done with the spec.
	invalid error
	now     time.Time
	// jobs that the list controls. One that cannot be decoded has no spec, and hence another image than any that is listed.
	jobs []*v1beta1.ImagePullJob
	// recheckAfter is when to read them again where the cache lacks some of them; zero where it does not.
	recheckAfter time.Duration
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.list) }

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	raw := stored.Untyped(gvk())
	switch err := r.cached.Get(ctx, name, raw); {
	case apierrors.IsNotFound(err):
		r.forget(name)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get list: %w", err)
	}
	fresh, _, err := r.listWrites.Overlay(ctx, name, []*unstructured.Unstructured{raw})
	if err != nil || len(fresh) == 0 || fresh[0].GetDeletionTimestamp() != nil {
		return nil, err
	}
	list, undecodable, err := stored.Decode[v1beta1.ImageListPullJob](fresh[0])
	if err != nil {
		// Not even the status can be decoded. The event is about the metadata that can.
		list, undecodable = &v1beta1.ImageListPullJob{}, err
		list.Namespace, list.Name, list.UID = name.Namespace, name.Name, fresh[0].GetUID()
		list.SetGroupVersionKind(gvk())
	}
	s := &snapshot{list: list, now: r.options.Now(), invalid: undecodable}
	if undecodable != nil {
		return s, nil //nolint:nilerr // the pass reports it
	}
	list.Default()
	if list.Status.CompletionTime != nil {
		return s, nil
	}
	if s.invalid = invalid(list); s.invalid != nil {
		return s, nil //nolint:nilerr // as above
	}
	s.jobs, err = r.observeJobs(ctx, s)
	return s, err
}

func (r *Reconciler) observeJobs(ctx context.Context, s *snapshot) ([]*v1beta1.ImagePullJob, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(jobKind().GroupVersion().WithKind(jobKind().Kind + "List"))
	if err := r.cached.List(ctx, list, append(owned.In(s.list.Namespace, s.list.UID), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list ImagePullJobs: %w", err)
	}
	cached := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		cached[i] = &list.Items[i]
	}
	fresh, recheckAfter, err := r.jobWrites.Overlay(ctx, s.key(), cached)
	if err != nil {
		return nil, err
	}
	s.recheckAfter = recheckAfter
	var jobs []*v1beta1.ImagePullJob
	for _, raw := range fresh {
		if !controls(s.list, raw) {
			continue
		}
		job, _, err := stored.Decode[v1beta1.ImagePullJob](raw)
		if err != nil {
			job = &v1beta1.ImagePullJob{}
			job.Namespace, job.Name, job.UID = raw.GetNamespace(), raw.GetName(), raw.GetUID()
			job.OwnerReferences, job.DeletionTimestamp = raw.GetOwnerReferences(), raw.GetDeletionTimestamp()
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// controls says whether a job is the list's, in whatever version that was recorded.
func controls(list *v1beta1.ImageListPullJob, job metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(job)
	return ref != nil && ref.UID == list.UID
}
