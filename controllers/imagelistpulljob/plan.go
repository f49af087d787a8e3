package imagelistpulljob

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/imagejobs"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// plan is what one pass is to do: what package imagepull decides, as writes.
type plan struct {
	*snapshot

	lists, jobKind stored.Kind
	decision       imagepull.ListPlan

	// What follows is known once the writes are answered.

	// runs reports whether the pass has come to the jobs.
	runs bool
	// met means that a job existed already. The event of the job brings the next pass.
	met              bool
	created, deleted int
	// found are jobs of the list that the cache lacks.
	found              []*unstructured.Unstructured
	creating, deleting pass
}

// invalid returns the first fault for which the webhook rejects a list that has its defaults, or all of its jobs; nil
// if there is none. An image that is no reference is no such fault: the plan reports it, and the other images get
// their jobs. Neither are too many pull secrets, of which the jobs get the first ones, or too long a sandboxConfig,
// which the jobs do not get.
func invalid(list *v1beta1.ImageListPullJob) error {
	for _, fault := range imagejobs.ValidateListPullJob(list) {
		ofImage := strings.HasPrefix(fault.Field, "spec.images[") && fault.Type != field.ErrorTypeDuplicate
		if !ofImage && fault.Field != "spec.pullSecrets" && fault.Field != "spec.sandboxConfig" {
			return fault
		}
	}
	return nil
}

func newPlan(s *snapshot, lists, jobs stored.Kind) *plan {
	return &plan{snapshot: s, lists: lists, jobKind: jobs, decision: imagepull.List(s.list, s.jobs, s.now)}
}

// pass returns the writes.
func (p *plan) pass() pass {
	if p.decision.Delete {
		return p.deleteList()
	}
	steps := []step{{Plan: p.label, Required: true}}
	if p.list.Status.CompletionTime == nil {
		steps = append(steps, step{Plan: p.createJobs}, step{Plan: p.deleteJobs}, step{Plan: p.report})
	}
	return driver.Sequence(steps...)
}

// after is when to look again.
func (p *plan) after() time.Duration {
	switch {
	case p.decision.Delete:
		return 0
	case p.list.Status.CompletionTime != nil:
		return p.decision.RequeueAfter
	}
	return p.recheckAfter
}

// deleteList deletes a list that has been finished for long enough. Its jobs go with it.
func (p *plan) deleteList() pass {
	deletion := []*write.Write{p.lists.Deletion(p.list)}
	return driver.Stage(deletion, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete finished list: %w", err)
		}
		return nil, nil
	})
}

// label writes the hash of the template as a label of the list. Users select the jobs of the same template by it.
func (p *plan) label() (pass, error) {
	hash := p.decision.Hash
	if p.list.Labels[kruise.PodRevisionLabelKey] == hash {
		return nil, nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}}}`, p.list.UID, kruise.PodRevisionLabelKey, hash)
	w := &write.Write{
		Verb: write.Patch, Object: p.lists.Named(p.key()), Type: types.MergePatchType, Body: write.Bytes(patch),
	}
	return driver.Stage([]*write.Write{w}, func(_ *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil {
			return nil, fmt.Errorf("label list: %w", err)
		}
		return nil, nil
	}), nil
}

// createJobs creates the jobs that are missing. A name that a job still has which is about to go is not free yet: the
// deletion brings the next pass.
func (p *plan) createJobs() (pass, error) {
	p.runs = true
	var writes []*write.Write
	for _, job := range p.decision.Create {
		name := p.nameOf(job)
		if slices.ContainsFunc(p.jobs, func(have *v1beta1.ImagePullJob) bool { return have.Name == name }) {
			p.met = true
			continue
		}
		named := *job
		named.Name = name
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&named)
		if err != nil {
			return nil, fmt.Errorf("encode job: %w", err)
		}
		raw := &unstructured.Unstructured{Object: content}
		raw.SetGroupVersionKind(p.jobKind.GVK)
		unstructured.RemoveNestedField(raw.Object, "status")
		writes = append(writes, &write.Write{Verb: write.Create, Object: raw})
	}
	p.creating = driver.Stage(writes, p.answerCreate)
	return p.creating, nil
}

// nameOf is the name of a job. It is the same at each attempt, and another one for another list, template or image.
func (p *plan) nameOf(job *v1beta1.ImagePullJob) string {
	const longest, letters = 58, 10 // with which names of pods end up, too
	prefix := job.GenerateName
	if len(prefix) > longest {
		prefix = prefix[:longest]
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", p.list.UID, p.decision.Hash, job.Spec.Image))
	return prefix + fmt.Sprintf("%x", sum)[:letters]
}

// answerCreate takes the answer to a creation. Where the name is taken, the question by whom follows: an earlier
// process may have created the job, or the job is being deleted.
func (p *plan) answerCreate(w *write.Write, answer write.Object, err error) ([]*write.Write, error) {
	switch {
	case w.Verb == write.Get:
		return nil, p.answerWho(w.Object, answer, err)
	case apierrors.IsAlreadyExists(err):
		return []*write.Write{{Verb: write.Get, Object: w.Object}}, nil
	case err != nil:
		return nil, fmt.Errorf("create job of image %s: %w", imageOf(w.Object), err)
	}
	p.created++
	return nil, nil
}

func (p *plan) answerWho(job, answer write.Object, err error) error {
	have, found := answer.(*unstructured.Unstructured)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read job %s past the cache: %w", job.GetName(), err)
	case !found || !owned.Controls(p.list, have):
		name, resource := job.GetName(), v1beta1.GroupVersion.WithResource("imagepulljobs").GroupResource()
		return fmt.Errorf("create job of image %s: the name %s is taken: %w",
			imageOf(job), name, apierrors.NewAlreadyExists(resource, name))
	case have.GetDeletionTimestamp() == nil:
		p.found = append(p.found, have)
	}
	p.met = true
	return nil
}

func imageOf(job write.Object) string {
	raw, is := job.(*unstructured.Unstructured)
	if !is {
		return ""
	}
	image, _, _ := unstructured.NestedString(raw.Object, "spec", "image")
	return image
}

// deleteJobs deletes the jobs that are not needed any more.
func (p *plan) deleteJobs() (pass, error) {
	var writes []*write.Write
	for _, job := range p.decision.DeleteJobs {
		writes = append(writes, p.jobKind.Deletion(job))
	}
	p.deleting = driver.Stage(writes, func(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete job %s: %w", w.Object.GetName(), err)
		}
		p.deleted++
		return nil, nil
	})
	return p.deleting, nil
}
