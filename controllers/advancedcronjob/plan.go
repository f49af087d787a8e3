package advancedcronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

// maxActive is how many children of an object can be active. Schedules of a tenant have no other bound.
const maxActive = 500

type (
	pass = driver.Pass[*write.Write]
	step = driver.Step[*write.Write]
)

// decision is all that one pass does, and why.
type decision struct {
	// trim are finished children beyond the history limits, the oldest first.
	trim []child
	// replace are active children that make room for the one that is created.
	replace []child
	// create is the child of tick; nil for none.
	create *unstructured.Unstructured
	tick   time.Time
	// held is the tick that is held back; zero for none.
	held time.Time
	// skips says that last is a tick without a child.
	skips bool
	// last is what the status records as long as the child of tick does not exist.
	last time.Time
	// notes explain the decision.
	notes []note.Note
	// after is when to look again; zero for the next event.
	after time.Duration
}

// decide decides what to do.
func decide(s *snapshot) decision {
	var p decision
	if s.undecodable != nil {
		return p
	}
	spec := &s.job.Spec
	p.trim = append(
		beyond(s.children, failed, *spec.FailedJobsHistoryLimit),
		beyond(s.children, succeeded, *spec.SuccessfulJobsHistoryLimit)...,
	)
	p.last = lastOf(s)
	if s.invalid != nil {
		return p
	}
	running := activeOf(s.children)
	d := schedule.Plan(schedule.Input{
		Schedule: s.schedule, Created: s.job.CreationTimestamp.Time, Last: p.last,
		DeadlineSeconds: spec.StartingDeadlineSeconds, Concurrency: schedule.Concurrency(spec.ConcurrencyPolicy),
		Active: len(running), MaxActive: maxActive, Paused: *spec.Paused,
		First: s.first, Now: s.now,
	})
	p.skips = d.Last.After(p.last)
	p.last, p.held, p.notes = d.Last, d.Held, d.Notes
	if !d.Look.IsZero() {
		p.after = max(d.Look.Sub(s.now), time.Millisecond)
	}
	if d.Tick.IsZero() {
		return p
	}
	p.tick, p.create = d.Tick, build(s, d.Tick)
	if d.Replace {
		p.replace = slices.DeleteFunc(slices.Clone(running), child.terminating)
	}
	return p
}

// consumes reports whether the decision records a tick, so that it gets no other child.
func (p *decision) consumes() bool { return p.create != nil || p.skips }

// plan is one pass: the decision as writes.
type plan struct {
	*snapshot
	decision

	jobs, childKind stored.Kind

	// What follows is known once the writes are answered.

	replacing, reporting pass
	replaced, trimmed    int
	// gone are the UIDs of the children that the pass has deleted, and created the children that exist now.
	gone    map[types.UID]bool
	created []child
	// isNew means that the child of the tick was created, and did not exist before.
	isNew bool
	// found is a child that the cache lacks, and failure why the child of the tick could not be created; nil for none.
	found   *unstructured.Unstructured
	failure error
}

func newPlan(s *snapshot, jobs, children stored.Kind) *plan {
	return &plan{snapshot: s, decision: decide(s), jobs: jobs, childKind: children, gone: map[types.UID]bool{}}
}

// pass returns the writes. The status is written also where another write failed. Finished children are deleted after
// their ticks are recorded.
func (p *plan) pass() pass {
	if p.undecodable != nil {
		return driver.Sequence[*write.Write]()
	}
	return driver.Sequence(
		step{Plan: p.replaceActive},
		step{Plan: p.createDue},
		step{Plan: p.report, Required: true},
		step{Plan: func() (pass, error) { return p.deletion(p.trim, &p.trimmed), nil }},
	)
}

// deletion deletes children, and what belongs to them, and counts them.
func (p *plan) deletion(children []child, deleted *int) pass {
	var writes []*write.Write
	for _, c := range children {
		w := p.childKind.Deletion(c)
		w.Propagation = metav1.DeletePropagationBackground
		writes = append(writes, w)
	}
	return driver.Stage(writes, func(w *write.Write, _ write.Object, err error) ([]*write.Write, error) {
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete %s %s: %w", p.kind.gvk.Kind, w.Object.GetName(), err)
		}
		*deleted++
		p.gone[w.Object.GetUID()] = true
		return nil, nil
	})
}

func (p *plan) replaceActive() (pass, error) {
	p.replacing = p.deletion(p.replace, &p.replaced)
	return p.replacing, nil
}

// createDue creates the child that is due, after the children that it replaces are deleted.
func (p *plan) createDue() (pass, error) {
	if p.create == nil || p.replacing.Err() != nil {
		return nil, nil //nolint:nilerr // the pass has the error of the step before
	}
	return driver.Stage([]*write.Write{{Verb: write.Create, Object: p.create}}, p.answerCreate), nil
}

// answerCreate takes the answer to the creation. Where the name is taken, the question by whom follows: the answer to
// an earlier creation was lost, or the name belongs to another object.
func (p *plan) answerCreate(w *write.Write, answer write.Object, err error) ([]*write.Write, error) {
	have, _ := answer.(*unstructured.Unstructured)
	what := p.kind.gvk.Kind + " " + w.Object.GetName()
	switch {
	case w.Verb == write.Get:
		return nil, p.answerWho(what, have, err)
	case apierrors.IsAlreadyExists(err):
		return []*write.Write{{Verb: write.Get, Object: w.Object}}, nil
	case err != nil:
		p.failure = err
		return nil, fmt.Errorf("create %s: %w", what, err)
	}
	p.isNew = true
	p.exists(have)
	return nil, nil
}

func (p *plan) answerWho(what string, have *unstructured.Unstructured, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("create %s: the child was deleted meanwhile", what)
	case err != nil:
		return fmt.Errorf("read %s past the cache: %w", what, err)
	case !owned.Controls(p.job, have):
		p.failure = fmt.Errorf("create %s: the name is taken", what)
		return p.failure
	case have.GetDeletionTimestamp() == nil:
		p.found = have
	}
	p.exists(have)
	return nil
}

// exists records that the child of the tick exists.
func (p *plan) exists(have *unstructured.Unstructured) {
	p.last = p.tick
	p.created = append(p.created, p.kind.view(have))
}

// lastOf returns the latest tick that is known: that of the status, of the process, or of a child. A child that claims
// a tick far ahead does not count.
func lastOf(s *snapshot) time.Time {
	var last time.Time
	if recorded := s.job.Status.LastScheduleTime; recorded != nil {
		last = recorded.Time
	}
	if s.remembered.After(last) {
		last = s.remembered
	}
	for _, c := range s.children {
		if c.scheduled.After(last) && !c.scheduled.After(s.now.Add(schedule.MaxAhead)) {
			last = c.scheduled
		}
	}
	return last
}

// activeOf returns the children that have not finished, the oldest tick first.
func activeOf(children []child) []child {
	all := slices.DeleteFunc(slices.Clone(children), func(c child) bool { return c.state != active })
	slices.SortFunc(all, func(a, b child) int {
		return cmp.Or(a.scheduled.Compare(b.scheduled), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// beyond returns the children in a state that are more than a limit, the oldest. Those without a start come first.
func beyond(children []child, in state, limit int32) []child {
	all := slices.DeleteFunc(slices.Clone(children), func(c child) bool { return c.state != in || c.terminating() })
	slices.SortFunc(all, func(a, b child) int {
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all[:max(len(all)-int(max(limit, 0)), 0)]
}

// build returns the child of a tick. The template comes from the stored object, with fields that this program does not
// know.
func build(s *snapshot, tick time.Time) *unstructured.Unstructured {
	template, _, _ := stored.Field(s.raw, "spec", "template", s.kind.member)
	fields, _ := template.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	built := &unstructured.Unstructured{Object: map[string]any{}}
	built.SetGroupVersionKind(s.kind.gvk)
	built.SetNamespace(s.job.Namespace)
	built.SetName(schedule.Name(s.job.Name, tick))
	if labels := texts(metadata["labels"]); len(labels) > 0 {
		built.SetLabels(labels)
	}
	annotations := texts(metadata["annotations"])
	annotations[v1beta1.AdvancedCronJobScheduledAtKey] = tick.UTC().Format(time.RFC3339)
	built.SetAnnotations(annotations)
	built.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s.job, s.job.GroupVersionKind())})
	spec, _ := fields["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	spec = runtime.DeepCopyJSON(maps.Clone(spec))
	if s.kind.name == v1beta1.BroadcastJobTemplate {
		settle(spec, &s.job.Spec.Template.BroadcastJobTemplate.Spec)
	}
	built.Object["spec"] = spec
	return built
}

// settle replaces what admission rejects in a BroadcastJob, and the reference stores: the values become those that they
// act as.
func settle(raw map[string]any, spec *v1beta1.BroadcastJobSpec) {
	effective := broadcast.Effective(spec)
	if equality.Semantic.DeepEqual(spec, effective) {
		return
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(effective)
	if err != nil { // a typed spec has no value that cannot be converted
		return
	}
	for _, member := range []string{"parallelism", "completionPolicy", "failurePolicy"} {
		if value, is := fields[member]; is {
			raw[member] = value
		}
	}
}

// texts returns a copy of labels or annotations.
func texts(value any) map[string]string {
	fields, _ := value.(map[string]any)
	all := make(map[string]string, len(fields)+1)
	for key, v := range fields {
		if text, ok := v.(string); ok {
			all[key] = text
		}
	}
	return all
}
