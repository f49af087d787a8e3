package advancedcronjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
)

// snapshot is all that one pass looks at, as it is after the own writes.
type snapshot struct {
	// job has its defaults, and raw is the same as it is stored.
	job *v1beta1.AdvancedCronJob
	raw *unstructured.Unstructured
	// undecodable is why not even the kind of the template is known, and invalid why no child can be created.
	undecodable, invalid error
	kind                 kind
	schedule             schedule.Schedule
	children             []child
	now                  time.Time
	// recheckAfter is when to read the job and its children again where the cache does not show a write; zero where it
	// does.
	recheckAfter time.Duration
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.job) }

// observe makes the snapshot; nil when there is nothing to do. Before the first child of a process, the object is read
// live.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	s, err := r.observeCached(ctx, name)
	if err != nil || s == nil || r.verified.Recall(name) == s.job.UID || newPlan(s).create == nil {
		return s, err
	}
	live := r.jobs.Named(name)
	if err := r.api.Live.Get(ctx, name, live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	r.verified.Note(name, func(uid *types.UID) { *uid = live.GetUID() })
	r.jobs.Writes.Patched(name, live)
	return r.observeCached(ctx, name)
}

func (r *Reconciler) observeCached(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.jobs.Latest(ctx, r.api.Cached, name)
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached && latest.Object == nil:
		r.forget(name)
		return nil, nil
	case latest.Object == nil || latest.Object.GetDeletionTimestamp() != nil:
		return nil, nil
	}
	s := &snapshot{raw: latest.Object, now: r.api.Now(), recheckAfter: latest.RecheckAfter}
	if s.job, s.undecodable, err = stored.DecodeMetadata[v1beta1.AdvancedCronJob](latest.Object); err != nil {
		return nil, err
	}
	s.job.SetGroupVersionKind(r.jobs.GVK)
	if s.undecodable != nil {
		return s, nil //nolint:nilerr // the pass reports it
	}
	s.job.Default()
	s.kind = kindOf(&s.job.Spec.Template)
	s.schedule, s.invalid = r.judge(s.job)
	if r.absent[s.kind.name] {
		if s.invalid == nil {
			s.invalid = fmt.Errorf("%ss are not installed", s.kind.gvk.Kind)
		}
		return s, nil
	}
	return s, r.observeChildren(ctx, s)
}

// judge returns the schedule of an object, or why it can have no children. Admission rejects more: what the reference
// has stored goes on.
func (r *Reconciler) judge(job *v1beta1.AdvancedCronJob) (schedule.Schedule, error) {
	if faults := schedule.ValidateChildren(effective(job)); len(faults) > 0 {
		return schedule.Schedule{}, faults[0]
	}
	parsed, err := schedule.Parse(job.Spec.Schedule, schedule.In{Zone: job.Spec.TimeZone, Local: r.options.Local})
	switch zone := job.Spec.TimeZone; {
	case errors.Is(err, schedule.ErrZone) && zone != nil && !schedule.HasZone(job.Spec.Schedule):
		return parsed, field.Invalid(field.NewPath("spec", "timeZone"), *zone, err.Error())
	case err != nil:
		return parsed, field.Invalid(field.NewPath("spec", "schedule"), job.Spec.Schedule, err.Error())
	}
	return parsed, nil
}

// effective returns an object whose template of BroadcastJobs has no fault that the reference stores and acts upon.
func effective(job *v1beta1.AdvancedCronJob) *v1beta1.AdvancedCronJob {
	from := job.Spec.Template.BroadcastJobTemplate
	if from == nil {
		return job
	}
	shallow, template := *job, *from
	template.Spec = *validation.EffectiveBroadcastJob(&from.Spec)
	shallow.Spec.Template.BroadcastJobTemplate = &template
	return &shallow
}

func (r *Reconciler) observeChildren(ctx context.Context, s *snapshot) error {
	kind := r.childKinds[s.kind.name]
	cached, err := stored.List(ctx, r.api.Cached, kind.GVK, owned.In(s.job.Namespace, s.job.UID)...)
	if err != nil {
		return err
	}
	fresh, recheckAfter, err := kind.Writes.Overlay(ctx, s.key(), cached)
	if err != nil {
		return err
	}
	s.recheckAfter = passes.Sooner(s.recheckAfter, recheckAfter)
	for _, raw := range fresh {
		if owned.Controls(s.job, raw) {
			s.children = append(s.children, s.kind.view(raw))
		}
	}
	return nil
}
