package imagelistpulljob

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/write"
)

// plan is what there is to do about a list now. In their order: the list gets its label, jobs are created and deleted,
// and the status is written.
type plan struct {
	*snapshot
	imagepull.ListPlan

	// What follows is known once the writes are answered.

	// runs means that the list has its label, and its jobs were written.
	runs bool
	// met means that a job existed already. The event of the job brings the next reconcile.
	met              bool
	created, deleted int
	notCreated       error
	notDeleted       error
}

// invalid returns the first fault for which the webhook rejects a list that has its defaults, or all of its jobs; nil
// if there is none. An image that is no reference is no such fault: the plan reports it, and the other images get
// their jobs.
func invalid(list *v1beta1.ImageListPullJob) error {
	for _, fault := range validation.ImageListPullJob(list) {
		if !strings.HasPrefix(fault.Field, "spec.images[") || fault.Type == field.ErrorTypeDuplicate {
			return fault
		}
	}
	return nil
}

func newPlan(s *snapshot) *plan {
	return &plan{snapshot: s, ListPlan: imagepull.List(s.list, s.jobs, s.now)}
}

// after is when to look again.
func (p *plan) after() time.Duration {
	switch {
	case p.Delete:
		return 0
	case p.list.Status.CompletionTime != nil:
		return p.RequeueAfter
	}
	return p.recheckAfter
}

// label returns the write of the hash of the template as a label of the list; nil where the list has it. Users select
// the jobs of the same template by it.
func (p *plan) label(lists stored.Kind) *write.Write {
	if p.list.Labels[kruise.PodRevisionLabelKey] == p.Hash {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, p.list.UID, kruise.PodRevisionLabelKey, p.Hash)
	return &write.Write{
		Verb: write.Patch, Object: lists.Named(p.key()), Type: types.MergePatchType, Body: write.Bytes(patch),
	}
}

// creations returns the jobs to create. A name that a job still has which is about to go is not free yet: the deletion
// brings the next reconcile.
func (p *plan) creations() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, job := range p.Create {
		named := *job
		named.Name = p.nameOf(job)
		if slices.ContainsFunc(p.jobs, func(have *v1beta1.ImagePullJob) bool { return have.Name == named.Name }) {
			p.met = true
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&named)
		if err != nil {
			return nil, fmt.Errorf("encode job: %w", err)
		}
		raw := &unstructured.Unstructured{Object: content}
		raw.SetGroupVersionKind(jobKind())
		unstructured.RemoveNestedField(raw.Object, "status")
		all = append(all, raw)
	}
	return all, nil
}

// nameOf is the name of a job. It is the same at each attempt, and another one for another list, template or image.
func (p *plan) nameOf(job *v1beta1.ImagePullJob) string {
	const longest, letters = 58, 10 // with which names of pods end up, too
	prefix := job.GenerateName
	if len(prefix) > longest {
		prefix = prefix[:longest]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", p.list.UID, p.Hash, job.Spec.Image))
	return prefix + fmt.Sprintf("%x", sum)[:letters]
}

// answerCreate takes the answer to a creation, and returns what failed.
func (p *plan) answerCreate(job *unstructured.Unstructured, existed bool, err error) error {
	switch {
	case err != nil:
		image, _, _ := unstructured.NestedString(job.Object, "spec", "image")
		return fmt.Errorf("create job of image %s: %w", image, err)
	case existed:
		p.met = true
	default:
		p.created++
	}
	return nil
}

// counters are the fields of a status that are always written: the schema requires them.
func counters(s *v1beta1.ImageListPullJobStatus) map[string]any {
	return map[string]any{
		"desired": s.Desired, "active": s.Active, "completed": s.Completed, "succeeded": s.Succeeded,
	}
}
