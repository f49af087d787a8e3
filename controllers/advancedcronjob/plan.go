package advancedcronjob

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/broadcast"
	"github.com/kruisekit/kruisekit/internal/schedule"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
)

// maxActive is how many children of an object can be active. Schedules of a tenant have no other bound.
const maxActive = 500

// pass is all that one pass does, and why.
type pass struct {
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

// plan decides what to do.
func plan(s *snapshot) pass {
	var p pass
	if s.undecodable != nil {
		return p
	}
	p.trim = append(beyond(s.children, failed, *s.job.Spec.FailedJobsHistoryLimit), beyond(s.children, succeeded, *s.job.Spec.SuccessfulJobsHistoryLimit)...)
	p.last = lastOf(s)
	if s.invalid != nil {
		return p
	}
	running := activeOf(s.children)
	d := schedule.Plan(schedule.Input{
		Schedule: s.schedule, Created: s.job.CreationTimestamp.Time, Last: p.last, DeadlineSeconds: s.job.Spec.StartingDeadlineSeconds,
		Concurrency: schedule.Concurrency(s.job.Spec.ConcurrencyPolicy), Active: len(running), MaxActive: maxActive, Paused: *s.job.Spec.Paused,
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

// consumes reports whether the pass records a tick, so that it gets no other child.
func (p *pass) consumes() bool { return p.create != nil || p.skips }

// lastOf returns the latest tick that is known: that of the status, of the process, or of a child. A child that claims a tick far ahead does not count.
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

// build returns the child of a tick. The template comes from the stored object, with fields that this program does not know.
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

// settle replaces what admission rejects in a BroadcastJob, and the reference stores: the values become those that they act
// as.
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
