package cloneset

import (
	"context"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/scale"
)

// fewPods are not worth a job: they are updated before it has begun.
const fewPods = 3

// metadataOf a pull job is what is remembered of one, and all that is cached.
func metadataOf(job *v1beta1.ImagePullJob) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: *job.ObjectMeta.DeepCopy()}
	m.SetGroupVersionKind(jobKind())
	return m
}

func jobKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImagePullJob") }

// observeJobs reads the pull jobs of the set.
func (r *Reconciler) observeJobs(ctx context.Context, s *snapshot) error {
	if !r.options.PreDownload {
		return nil
	}
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(jobKind().GroupVersion().WithKind(jobKind().Kind + "List"))
	if err := r.list(ctx, s, &list); err != nil {
		return err
	}
	all, err := controlled(ctx, s, r.jobWrites, list.Items)
	s.jobs = slices.DeleteFunc(all, func(job *metav1.PartialObjectMetadata) bool { return job.DeletionTimestamp != nil })
	return err
}

// preDownload has the nodes pull the images of the update revision while its pods are still to come, and ends the jobs of
// other revisions. Whether that is worth it is decided once for each revision, and told by a label of it. What fails here
// stops nothing else.
func (a *act) preDownload(ctx context.Context) error {
	if !a.options.PreDownload {
		return nil
	}
	rev := a.stored(a.plan.update)
	if err := a.endJobs(ctx, rev); err != nil {
		return err
	}
	if rev == nil || a.plan.current == a.plan.update || isDecided(rev) || a.set.DeletionTimestamp != nil || a.updatedReady() < a.wantedReady() {
		return nil
	}
	from, err := a.aheadFrom()
	if err != nil {
		return err
	}
	if from == nil {
		return a.decided(ctx, rev, v1beta1.ImagePreDownloadIgnoredKey)
	}
	if err := a.createJobs(ctx, rev, from); err != nil {
		return err
	}
	return a.decided(ctx, rev, v1beta1.ImagePreDownloadCreatedKey)
}

// endJobs deletes the jobs that nobody waits for: all of them when the rollout is over, else those of other revisions.
func (a *act) endJobs(ctx context.Context, rev *appsv1.ControllerRevision) error {
	var over []*metav1.PartialObjectMetadata
	for _, job := range a.jobs {
		current := rev != nil && job.Labels[pub.RevisionHashLabelKey] == rev.Labels[pub.RevisionHashLabelKey]
		if a.plan.current == a.plan.update || !current {
			over = append(over, job)
		}
	}
	_, err := batches.Run(over, func(job *metav1.PartialObjectMetadata) error {
		if err := a.client.Delete(ctx, job.DeepCopy(), client.Preconditions{UID: &job.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete pull job %s: %w", job.Name, err)
		}
		a.jobWrites.Deleted(a.key(), job)
		return nil
	})
	return err
}

func isDecided(rev *appsv1.ControllerRevision) bool {
	_, created := rev.Labels[v1beta1.ImagePreDownloadCreatedKey]
	_, ignored := rev.Labels[v1beta1.ImagePreDownloadIgnoredKey]
	return created || ignored
}

func (a *act) decided(ctx context.Context, rev *appsv1.ControllerRevision, label string) error {
	fresh := rev.DeepCopy()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:"true"}}}`, rev.UID, label)
	if err := a.client.Patch(ctx, fresh, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("label revision %s: %w", rev.Name, err)
	}
	a.revisionWrites.Patched(a.key(), fresh)
	for i := range a.revisions {
		if a.revisions[i].UID == fresh.UID {
			a.revisions[i] = fresh
		}
	}
	return nil
}

// updatedReady is how many updated pods were ready when the status was written.
func (a *act) updatedReady() int32 {
	if a.set.Status.UpdateRevision != a.plan.update {
		return 0
	}
	return a.set.Status.UpdatedReadyReplicas
}

func (a *act) inPlaceStrategy() pub.InPlaceUpdateStrategy {
	return ptr.Deref(a.plan.rolling.InPlaceUpdateStrategy, pub.InPlaceUpdateStrategy{})
}

func (a *act) wantedReady() int32 {
	return ptr.Deref(a.inPlaceStrategy().ImagePreDownloadMinUpdatedReadyPods, 0)
}

// aheadFrom is the template whose pods are worth pulling for; nil when none is.
func (a *act) aheadFrom() (*corev1.PodTemplateSpec, error) {
	replicas := *a.set.Spec.Replicas
	policy := a.plan.rolling.PodUpdatePolicy
	inPlace := policy == v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType || policy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	if !inPlace || replicas <= fewPods || a.allAtOnce() {
		return nil, nil
	}
	current := a.stored(a.plan.current)
	if current == nil {
		return nil, nil
	}
	if _, blocked := a.diff(revision.Short(current.Name), a.plan.update); blocked != nil {
		return nil, nil //nolint:nilerr // its pods are recreated, which pulls anyway
	}
	return revision.Decode(current.Data.Raw)
}

// allAtOnce says that no pod waits for another one.
func (a *act) allAtOnce() bool {
	replicas := *a.set.Spec.Replicas
	if a.plan.limits.Partition > 0 || a.plan.rolling.MaxUnavailable == nil {
		return false
	}
	n, err := scale.AmountOr(a.plan.rolling.MaxUnavailable, math.MaxInt32, replicas, scale.RoundDown)
	return err == nil && n >= replicas
}

// createJobs makes the jobs. One that the API server refuses is told and left: the rollout does without.
func (a *act) createJobs(ctx context.Context, rev *appsv1.ControllerRevision, from *corev1.PodTemplateSpec) error {
	strategy := a.inPlaceStrategy()
	jobs := imagepull.Ahead(imagepull.Rollout{
		Namespace: a.set.Namespace, Owner: controllerRef(a.set), Revision: rev, From: from, To: &a.set.Spec.Template,
		Selector: a.set.Spec.Selector, Parallelism: strategy.ImagePreDownloadParallelism, TimeoutSeconds: strategy.ImagePreDownloadTimeoutSeconds,
	})
	_, err := batches.Run(jobs, func(job *v1beta1.ImagePullJob) error {
		err := a.client.Create(ctx, job)
		switch {
		case apierrors.IsAlreadyExists(err):
		case err == nil:
			a.jobWrites.Created(a.key(), metadataOf(job))
			a.tell(corev1.EventTypeNormal, reasonCreatedPullJob, "created ImagePullJob %s for image %s", job.Name, job.Spec.Image)
		default:
			a.jobWrites.Doubt(a.key(), metadataOf(job), err)
			a.tell(corev1.EventTypeNormal, reasonFailedPullJob, "failed to create ImagePullJob %s: %v", job.Name, err)
			if isFinal(err) {
				return nil
			}
			return fmt.Errorf("create pull job %s: %w", job.Name, err)
		}
		return nil
	})
	return err
}

// isFinal says that the API server will not think better of it.
func isFinal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
