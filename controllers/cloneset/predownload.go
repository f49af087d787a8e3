package cloneset

import (
	"context"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/batches"
	"github.com/kruisekit/kruisekit/internal/failure"
	"github.com/kruisekit/kruisekit/internal/history"
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
// other revisions. Whether that is worth it is decided once for each revision, and recorded in a label of it. A failure here
// stops nothing else.
func (r *Reconciler) preDownload(ctx context.Context, s *snapshot, p *plan) error {
	if !r.options.PreDownload {
		return nil
	}
	rev := s.stored(p.update)
	if err := r.endJobs(ctx, s, p.overJobs(s, rev)); err != nil {
		return err
	}
	if !p.decidesPreDownload(s, rev) {
		return nil
	}
	jobs, err := p.pullJobs(s, rev, r.options)
	if err != nil {
		return err
	}
	label := v1beta1.ImagePreDownloadIgnoredKey
	if jobs != nil {
		label = v1beta1.ImagePreDownloadCreatedKey
	}
	if err := r.createJobs(ctx, s, jobs); err != nil {
		return err
	}
	fresh, err := r.history().Label(ctx, s.key(), rev, map[string]string{label: "true"})
	s.revisions = history.Replace(s.revisions, fresh)
	return err
}

// overJobs are the jobs that no pod waits for: all of them when the rollout is over, else those of other revisions.
func (p *plan) overJobs(s *snapshot, rev *appsv1.ControllerRevision) []*metav1.PartialObjectMetadata {
	return slices.DeleteFunc(slices.Clone(s.jobs), func(job *metav1.PartialObjectMetadata) bool {
		current := rev != nil && job.Labels[pub.RevisionHashLabelKey] == rev.Labels[pub.RevisionHashLabelKey]
		return p.current != p.update && current
	})
}

func (r *Reconciler) endJobs(ctx context.Context, s *snapshot, over []*metav1.PartialObjectMetadata) error {
	_, err := batches.Each(over, func(job *metav1.PartialObjectMetadata) error {
		if err := r.api.Client.Delete(ctx, job.DeepCopy(), client.Preconditions{UID: &job.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete pull job %s: %w", job.Name, err)
		}
		r.jobWrites.Deleted(s.key(), job)
		return nil
	})
	return err
}

// decidesPreDownload reports whether this pass decides about the jobs of a revision: once, when enough updated pods are ready.
func (p *plan) decidesPreDownload(s *snapshot, rev *appsv1.ControllerRevision) bool {
	if rev == nil || p.current == p.update || s.set.DeletionTimestamp != nil {
		return false
	}
	_, created := rev.Labels[v1beta1.ImagePreDownloadCreatedKey]
	_, ignored := rev.Labels[v1beta1.ImagePreDownloadIgnoredKey]
	ready := int32(0)
	if s.set.Status.UpdateRevision == p.update {
		ready = s.set.Status.UpdatedReadyReplicas
	}
	return !created && !ignored && ready >= ptr.Deref(p.inPlaceStrategy().ImagePreDownloadMinUpdatedReadyPods, 0)
}

func (p *plan) inPlaceStrategy() pub.InPlaceUpdateStrategy {
	return ptr.Deref(p.rolling.InPlaceUpdateStrategy, pub.InPlaceUpdateStrategy{})
}

// pullJobs are the jobs for a revision; nil where they are not worth it.
func (p *plan) pullJobs(s *snapshot, rev *appsv1.ControllerRevision, o Options) ([]*v1beta1.ImagePullJob, error) {
	current := s.stored(p.current)
	policy := p.rolling.PodUpdatePolicy
	inPlace := policy == v1beta1.InPlaceIfPossibleCloneSetPodUpdateStrategyType || policy == v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType
	if !inPlace || *s.set.Spec.Replicas <= fewPods || p.allAtOnce(s) || current == nil {
		return nil, nil
	}
	x, y := current.Annotations[pub.CloneSetVolumeClaimTemplateHashKey], rev.Annotations[pub.CloneSetVolumeClaimTemplateHashKey]
	if o.RecreateOnClaimChange && policy != v1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType && x != "" && y != "" && x != y {
		return nil, nil
	}
	from, err := revision.Decode(current.Data.Raw)
	if err != nil {
		return nil, err
	}
	if _, blocked := inplace.Diff(from, &s.set.Spec.Template, o.policy()); blocked != nil {
		return nil, nil //nolint:nilerr // its pods are recreated, which pulls anyway
	}
	strategy := p.inPlaceStrategy()
	jobs := imagepull.Ahead(imagepull.Rollout{
		Namespace: s.set.Namespace, Owner: s.controllerRef(), Revision: rev, From: from, To: &s.set.Spec.Template,
		Selector: s.set.Spec.Selector, Parallelism: strategy.ImagePreDownloadParallelism, TimeoutSeconds: strategy.ImagePreDownloadTimeoutSeconds,
	})
	return slices.Clip(append([]*v1beta1.ImagePullJob{}, jobs...)), nil
}

// allAtOnce reports whether no pod waits for another one.
func (p *plan) allAtOnce(s *snapshot) bool {
	replicas := *s.set.Spec.Replicas
	if p.limits.Partition > 0 || p.rolling.MaxUnavailable == nil {
		return false
	}
	n, err := scale.AmountOr(p.rolling.MaxUnavailable, math.MaxInt32, replicas, scale.RoundDown)
	return err == nil && n >= replicas
}

// createJobs creates the jobs. A job that the API server refuses for good is reported and left: the rollout does without.
func (r *Reconciler) createJobs(ctx context.Context, s *snapshot, jobs []*v1beta1.ImagePullJob) error {
	_, err := batches.Each(jobs, func(job *v1beta1.ImagePullJob) error {
		err := r.api.Client.Create(ctx, job)
		switch {
		case apierrors.IsAlreadyExists(err):
		case err == nil:
			r.jobWrites.Created(s.key(), metadataOf(job))
			r.emit(s, normal(reasonCreatedPullJob), "created ImagePullJob %s for image %s", job.Name, job.Spec.Image)
		default:
			r.jobWrites.Doubt(s.key(), metadataOf(job), err)
			r.emit(s, normal(reasonFailedPullJob), "failed to create ImagePullJob %s: %v", job.Name, err)
			if !failure.IsFinal(err) {
				return fmt.Errorf("create pull job %s: %w", job.Name, err)
			}
		}
		return nil
	})
	return err
}
