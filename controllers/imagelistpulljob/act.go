package imagelistpulljob

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver/batches"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// act is one pass that writes.
type act struct {
	*Reconciler
	*snapshot

	plan imagepull.ListPlan
	// met says that a job was there already. Its next event brings the next pass.
	met atomic.Bool
}

// leave deletes a list that has been finished for long enough. Its jobs go with it.
func (a *act) leave(ctx context.Context) error {
	raw := a.listObjects.Named(a.key())
	if err := a.api.Client.Delete(ctx, raw, client.Preconditions{UID: &a.list.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete finished list: %w", err)
	}
	raw.SetUID(a.list.UID)
	a.listObjects.Writes.Deleted(a.key(), raw)
	return nil
}

// label writes the hash of the template as a label of the list. Users select the jobs of the same template by it.
func (a *act) label(ctx context.Context) error {
	if a.list.Labels[kruise.PodRevisionLabelKey] == a.plan.Hash {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, a.list.UID, kruise.PodRevisionLabelKey, a.plan.Hash)
	raw := a.listObjects.Named(a.key())
	if err := a.api.Client.Patch(ctx, raw, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("label list: %w", err)
	}
	a.listObjects.Writes.Patched(a.key(), raw)
	return nil
}

// make creates the jobs that are lacking. One that is refused stops the creation of no other.
func (a *act) make(ctx context.Context) error {
	made, err := batches.Each(a.plan.Create, func(job *v1beta1.ImagePullJob) error { return a.create(ctx, job) })
	switch {
	case err != nil:
		first, _, _ := strings.Cut(err.Error(), "\n") // an event has no room for one of each image
		a.api.Event(a.list, corev1.EventTypeWarning, reasonFailedCreate, "failed to create ImagePullJobs: "+first)
	case made > 0 && !a.met.Load():
		a.api.Event(a.list, corev1.EventTypeNormal, reasonCreated, fmt.Sprintf("created ImagePullJobs: %d", made))
	}
	return err
}

func (a *act) create(ctx context.Context, job *v1beta1.ImagePullJob) error {
	job.Name = a.nameOf(job)
	if a.holds(job.Name) {
		a.met.Store(true)
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return fmt.Errorf("encode job: %w", err)
	}
	raw := &unstructured.Unstructured{Object: content}
	raw.SetGroupVersionKind(jobKind())
	unstructured.RemoveNestedField(raw.Object, "status")
	switch err := a.api.Client.Create(ctx, raw); {
	case apierrors.IsAlreadyExists(err):
		return a.meet(ctx, job, err)
	case err != nil:
		a.jobObjects.Writes.Doubt(a.key(), raw, err)
		return fmt.Errorf("create job of image %s: %w", job.Spec.Image, err)
	}
	a.jobObjects.Writes.Created(a.key(), raw)
	return nil
}

// nameOf is the name of a job. It is the same at each attempt, and another one for another list, template or image.
func (a *act) nameOf(job *v1beta1.ImagePullJob) string {
	const longest, letters = 58, 10 // with which names of pods end up, too
	prefix := job.GenerateName
	if len(prefix) > longest {
		prefix = prefix[:longest]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", a.list.UID, a.plan.Hash, job.Spec.Image))
	return prefix + fmt.Sprintf("%x", sum)[:letters]
}

// meet is about a job that is there already: made by an earlier process, or on its way out.
func (a *act) meet(ctx context.Context, job *v1beta1.ImagePullJob, exists error) error {
	there := stored.Untyped(jobKind())
	switch err := a.api.Live.Get(ctx, client.ObjectKeyFromObject(job), there); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read job %s past the cache: %w", job.Name, err)
	case !owned.Controls(a.list, there):
		return fmt.Errorf("create job of image %s: the name %s is taken: %w", job.Spec.Image, job.Name, exists)
	case there.GetDeletionTimestamp() == nil:
		a.jobObjects.Writes.Created(a.key(), there)
	}
	a.met.Store(true)
	return nil
}

// holds says whether a name is that of a job which is about to go, so that it is not free yet. Its deletion brings the next pass.
func (a *act) holds(name string) bool {
	return slices.ContainsFunc(a.jobs, func(job *v1beta1.ImagePullJob) bool { return job.Name == name })
}

// drop deletes the jobs that are of no more use. One that may not be deleted stops the deletion of no other.
func (a *act) drop(ctx context.Context) error {
	dropped, err := batches.Each(a.plan.DeleteJobs, func(job *v1beta1.ImagePullJob) error {
		raw := a.jobObjects.Named(client.ObjectKeyFromObject(job))
		if err := a.api.Client.Delete(ctx, raw, client.Preconditions{UID: &job.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete job %s: %w", job.Name, err)
		}
		raw.SetUID(job.UID)
		a.jobObjects.Writes.Deleted(a.key(), raw)
		return nil
	})
	if err == nil && dropped > 0 {
		a.api.Event(a.list, corev1.EventTypeNormal, reasonDeleted, fmt.Sprintf("deleted ImagePullJobs: %d", dropped))
	}
	return err
}

// report writes the status, if it changed.
func (a *act) report(ctx context.Context) error {
	fresh, status := *a.list, &a.plan.Status
	fresh.Status = *status
	_, err := a.status.Write(ctx, a.list, &fresh, map[string]any{ // the schema requires them
		"desired": status.Desired, "active": status.Active, "completed": status.Completed, "succeeded": status.Succeeded,
	})
	return err
}
