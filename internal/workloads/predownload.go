package workloads

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// fewPods are not worth a job: they are updated before it has begun.
const fewPods = 3

// Rollout is a workload on its way from one revision to another.
type Rollout struct {
	Namespace string
	Owner     metav1.OwnerReference
	Selector  *metav1.LabelSelector
	Replicas  int32
	// Current and Update are the stored revisions; nil where they are not stored. Over means that no pod is left to
	// update.
	Current, Update *appsv1.ControllerRevision
	Over            bool
	// Older are further revisions that pods have. A container whose image is new to the pods of any revision has a job.
	Older []*appsv1.ControllerRevision
	// To is the template of Update.
	To *corev1.PodTemplateSpec
	// Recreates means that pods are not updated in place, AtOnce that no pod waits for another one.
	Recreates, AtOnce bool
	// Always means that a rollout counts also where it is small or recreates pods.
	Always bool
	// UpdatedReady is how many updated pods are ready.
	UpdatedReady int32
	Strategy     kruise.InPlaceUpdateStrategy
	Policy       inplace.Policy
	// pullJobs are those of the workload.
	Jobs []*metav1.PartialObjectMetadata
}

// PreDownload is what to write.
type PreDownload struct {
	// End are jobs to delete: all of them when the rollout has ended, else those of other revisions.
	End []*metav1.PartialObjectMetadata
	// Create are jobs to create, and Label the label that Revision gets then; empty for no decision.
	Create   []*v1beta1.ImagePullJob
	Revision *appsv1.ControllerRevision
	Label    string
}

// PlanPreDownload plans the jobs by which nodes pull the images of a rollout while its pods are still to come. Whether
// a revision is worth it is decided once, and recorded in a label of the revision.
func PlanPreDownload(r Rollout) (PreDownload, error) {
	result := PreDownload{Revision: r.Update}
	for _, job := range r.Jobs {
		current := r.Update != nil && job.Labels[kruise.RevisionHashLabelKey] == r.Update.Labels[kruise.RevisionHashLabelKey]
		if r.Over || !current {
			result.End = append(result.End, job)
		}
	}
	if r.Over || r.Update == nil || isDecided(r.Update) ||
		r.UpdatedReady < ptr.Deref(r.Strategy.ImagePreDownloadMinUpdatedReadyPods, 0) {
		return result, nil
	}
	from, err := r.from()
	if err != nil {
		return result, err
	}
	if len(from) == 0 {
		result.Label = v1beta1.ImagePreDownloadIgnoredKey
		return result, nil
	}
	result.Label = v1beta1.ImagePreDownloadCreatedKey
	named := map[string]bool{}
	for _, template := range from {
		for _, job := range imagepull.PreDownload(imagepull.Rollout{
			Namespace: r.Namespace, Owner: r.Owner, Revision: r.Update, From: template, To: r.To, Selector: r.Selector,
			Parallelism: r.Strategy.ImagePreDownloadParallelism, TimeoutSeconds: r.Strategy.ImagePreDownloadTimeoutSeconds,
		}) {
			if !named[job.Name] {
				named[job.Name] = true
				result.Create = append(result.Create, job)
			}
		}
	}
	return result, nil
}

func isDecided(rev *appsv1.ControllerRevision) bool {
	_, created := rev.Labels[v1beta1.ImagePreDownloadCreatedKey]
	_, ignored := rev.Labels[v1beta1.ImagePreDownloadIgnoredKey]
	return created || ignored
}

// from are the templates whose pods are worth pulling for; nil for none.
func (r *Rollout) from() ([]*corev1.PodTemplateSpec, error) {
	if r.AtOnce || !r.Always && (r.Recreates || r.Replicas <= fewPods) {
		return nil, nil
	}
	var all []*corev1.PodTemplateSpec
	for _, rev := range append([]*appsv1.ControllerRevision{r.Current}, r.Older...) {
		if rev == nil {
			continue
		}
		from, err := revision.Decode(rev.Data.Raw)
		if err != nil {
			return nil, err
		}
		if _, blocked := inplace.Diff(from, r.To, r.Policy); blocked != nil && !r.Always {
			continue // its pods are recreated, which pulls anyway
		}
		all = append(all, from)
	}
	return all, nil
}

// pullJobKind is the kind of the jobs.
func pullJobKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImagePullJob") }

// PullJobMetadata is what is remembered of a job, and all that is cached.
func PullJobMetadata(job *v1beta1.ImagePullJob) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: *job.ObjectMeta.DeepCopy()}
	m.SetGroupVersionKind(pullJobKind())
	return m
}

// writes returns the ordered writes of a result: they delete jobs, create jobs, and then label the revision.
func (r PreDownload) writes() []*write.Write {
	var writes []*write.Write
	for _, job := range r.End {
		writes = append(writes, &write.Write{Verb: write.Delete, Object: job})
	}
	for _, job := range r.Create {
		writes = append(writes, &write.Write{Verb: write.Create, Object: job})
	}
	if r.Label != "" {
		data := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"},"uid":%q}}`, r.Label, r.Revision.UID)
		writes = append(writes, &write.Write{
			Verb: write.Patch, Object: r.Revision, Type: types.MergePatchType, Body: write.Bytes(data),
		})
	}
	return writes
}

// pullJobs records the jobs that a pass writes in a ledger of what is cached of them.
type pullJobs struct {
	*ledger.Ledger[*metav1.PartialObjectMetadata]
}

// Record takes the answer to a write of a job.
func (j pullJobs) Record(owner types.NamespacedName, w *write.Write, answer write.Object, err error) {
	switch job := w.Object.(type) {
	case *metav1.PartialObjectMetadata:
		j.Ledger.Record(owner, w, answer, err)
	case *v1beta1.ImagePullJob:
		known := &write.Write{Verb: w.Verb, Object: PullJobMetadata(job)}
		if fresh, ok := answer.(*v1beta1.ImagePullJob); ok {
			answer = PullJobMetadata(fresh)
		}
		j.Ledger.Record(owner, known, answer, err)
	}
}
