package advancedcronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/validation"
	"github.com/kruisekit/kruisekit/write"
)

// maxActive is how many children of an object can be active. Schedules of a tenant have no other bound.
const maxActive = 500

// plan is what there is to do about an object now. In their order: active children make room, the child that is due is
// created, the status is written, and finished children are deleted once their ticks are recorded.
type plan struct {
	*snapshot
	// Decision is that of the schedule. Its Last is what the status records.
	schedule.Decision

	// trim are finished children beyond the history limits, the oldest first.
	trim []child
	// replace are active children that make room for the one that is created.
	replace []child
	// create is the child of the tick; nil for none.
	create *unstructured.Unstructured
	// after is when to look again; zero for the next event.
	after time.Duration

	// What follows is known once the writes are answered.

	replaced, trimmed int
	// gone are the UIDs of the children that are deleted, and created the children that exist now.
	gone    map[types.UID]bool
	created []child
	// isNew means that the child of the tick was created, and did not exist before.
	isNew bool
	// failure is why the child of the tick could not be created; nil for none.
	failure error
	// recorded means that the status is stored.
	recorded bool
}

func newPlan(s *snapshot) *plan {
	p := &plan{snapshot: s, gone: map[types.UID]bool{}, after: s.recheckAfter}
	if s.undecodable != nil {
		return p
	}
	spec := &s.job.Spec
	p.trim = append(
		beyond(s.children, failed, *spec.FailedJobsHistoryLimit),
		beyond(s.children, succeeded, *spec.SuccessfulJobsHistoryLimit)...,
	)
	if p.Last = lastOf(s); s.invalid != nil {
		return p
	}
	running := activeOf(s.children)
	p.Decision = schedule.Plan(schedule.Input{
		Schedule: s.schedule, Created: s.job.CreationTimestamp.Time, Last: p.Last,
		DeadlineSeconds: spec.StartingDeadlineSeconds, Concurrency: schedule.Concurrency(spec.ConcurrencyPolicy),
		Active: len(running), MaxActive: maxActive, Paused: *spec.Paused,
		Now: s.now,
	})
	if !p.Look.IsZero() {
		p.after = passes.Sooner(p.after, max(p.Look.Sub(s.now), time.Millisecond))
	}
	if !p.Tick.IsZero() {
		p.create = build(s, p.Tick)
	}
	if p.Replace {
		p.replace = slices.DeleteFunc(slices.Clone(running), child.terminating)
	}
	return p
}

// deletions returns the writes that delete children, and what belongs to them.
func deletions(kind stored.Kind, children []child) []*write.Write {
	writes := make([]*write.Write, 0, len(children))
	for _, c := range children {
		w := kind.Deletion(c)
		w.Propagation = metav1.DeletePropagationBackground
		writes = append(writes, w)
	}
	return writes
}

// answerCreate takes the answer to the creation of the child of the tick, and returns what failed.
func (p *plan) answerCreate(have write.Object, existed bool, err error) error {
	if err != nil {
		p.failure = err
		return fmt.Errorf("create %s %s: %w", p.kind.gvk.Kind, p.create.GetName(), err)
	}
	if have == nil {
		return fmt.Errorf("create %s %s: the object that had the name was deleted", p.kind.gvk.Kind, p.create.GetName())
	}
	p.Last, p.isNew = p.Tick, !existed
	if raw, ok := have.(*unstructured.Unstructured); ok {
		p.created = append(p.created, p.kind.view(raw))
	}
	return nil
}

// lastOf returns the latest tick that is known: that of the status, or of a child. A child that claims
// a tick far ahead does not count.
func lastOf(s *snapshot) time.Time {
	var last time.Time
	if recorded := s.job.Status.LastScheduleTime; recorded != nil {
		last = recorded.Time
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
	built := &unstructured.Unstructured{Object: map[string]any{}}
	built.SetGroupVersionKind(s.kind.gvk)
	built.SetNamespace(s.job.Namespace)
	built.SetName(schedule.Name(s.job.Name, tick))
	labels, _, _ := unstructured.NestedStringMap(fields, "metadata", "labels")
	built.SetLabels(labels)
	annotations, _, _ := unstructured.NestedStringMap(fields, "metadata", "annotations")
	if annotations == nil {
		annotations = map[string]string{}
	}
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
	effective := validation.EffectiveBroadcastJob(spec)
	if equality.Semantic.DeepEqual(spec, effective) {
		return
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(effective)
	if err != nil { // a typed spec has no value that cannot be converted
		return
	}
	for _, member := range []string{"parallelism", "completionPolicy", "failurePolicy"} {
		if value, ok := fields[member]; ok {
			raw[member] = value
		}
	}
}
