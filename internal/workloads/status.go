package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/write"
)

// Report is a status to write.
type Report struct {
	// Object is a copy of the workload with the new status.
	Object client.Object
	// Required are the counters that the schema requires. They are in a patch also where they are the same: where
	// nothing is stored yet, they are missing.
	Required map[string]any
	// scaling and updating are the errors of the spec. An event announces each once: what fails the creation of
	// pods, and what has a safe reading.
	scaling, updating error
}

// write returns the write of the status; nil where the status stays the same.
func (r *Report) write(o *Observation) (*write.Write, error) {
	return stored.WriteStatus(stored.Kind{GVK: o.Kind}, o.Object, r.Object, r.Required)
}

// report writes a status, if it changed, and emits what the status reports for the first time.
func (k *Kit) report(ctx context.Context, o *Observation, r Report) error {
	w, err := r.write(o)
	if err != nil || w == nil {
		return err
	}
	_, err = k.Send(ctx, o.Key(), w)
	switch {
	case err == nil:
		k.emitInvalid(o, r.scaling, true)
		k.emitInvalid(o, r.updating, false)
	case !write.IsOutdated(err):
		return fmt.Errorf("%s: %w", w, err)
	}
	return nil
}

// giveUp reports why a pass ends before anything is known of the pods.
func (k *Kit) giveUp(ctx context.Context, o *Observation, r Report, why error) error {
	r.scaling = o.Invalid
	err := k.report(ctx, o, r)
	if err == nil && o.Invalid != nil {
		return terminal(why) // only another spec can mend it
	}
	return errors.Join(why, err)
}

// Converted returns conditions as others, whose fields have the same names in JSON.
func Converted[To any](from any) (to To) {
	text, _ := json.Marshal(from) //nolint:errchkjson // strings and times
	_ = json.Unmarshal(text, &to)
	return to
}

// Stall reports in the condition Stalled why a workload stands still. sameRevision means that the workload goes to the
// same revision as the stored status does.
func (p *Plan) Stall(o *Observation, list *Conditions, sameRevision bool) {
	var headline note.Note
	if p.Runs(o) {
		headline, _ = note.Headline(p.Notes())
	}
	before := o.Known.wait
	if !sameRevision {
		before = Wait{}
	}
	p.wait = before.Next(headline, p.Pass.Counts().UpdatedPods, o.Now)
	p.After.In(Stall(list, Stalling{
		Now: o.Now, Headline: headline, Wait: p.wait, SameRevision: sameRevision,
	}))
}

// Collisions returns the collision count of a status after a pass failed. Where the name of the revision is taken, the
// next pass resolves another one.
func Collisions(before *int32, why error) *int32 {
	var taken *revision.TakenError
	if !errors.As(why, &taken) {
		return before
	}
	return ptr.To(ptr.Deref(before, 0) + 1)
}

// Condition is a condition of a workload. A kind whose conditions have no LastUpdateTime leaves it out.
type Condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	LastUpdateTime     metav1.Time            `json:"lastUpdateTime"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
}

// Conditions are the conditions of one object, at most one of each type.
type Conditions []Condition

// Find returns a condition by its type; nil for none.
func (l Conditions) Find(conditionType string) *Condition {
	for i := range l {
		if l[i].Type == conditionType {
			return &l[i]
		}
	}
	return nil
}

// Remove removes a condition.
func (l *Conditions) Remove(conditionType string) {
	*l = slices.DeleteFunc(*l, func(c Condition) bool { return c.Type == conditionType })
}

// Set sets a condition. One with the same status and reason stays as it is.
func (l *Conditions) Set(c Condition, now time.Time) {
	old := l.Find(c.Type)
	if old != nil && old.Status == c.Status && old.Reason == c.Reason {
		return
	}
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	l.Remove(c.Type)
	*l = append(*l, c)
}

// SetError sets a condition of failure to True with the text of an error, and removes it without an error.
func (l *Conditions) SetError(conditionType string, err error, now time.Time) {
	if err == nil {
		l.Remove(conditionType)
		return
	}
	since := metav1.NewTime(now)
	if old := l.Find(conditionType); old != nil {
		if old.Message == err.Error() {
			return
		}
		since = old.LastTransitionTime
	}
	l.Remove(conditionType)
	*l = append(*l, Condition{
		Type: conditionType, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: err.Error(),
	})
}

// Verdict is a condition about one sort of write, which is kept once it exists.
type Verdict struct {
	Type string
	// Failed and Succeeded are the reasons of True and False.
	Failed, Succeeded string
	// Prefix is what the message begins with.
	Prefix string
}

// Judge sets a condition to True with an error. Without one a condition that exists becomes False, and none is added.
func (l *Conditions) Judge(v Verdict, err error, now time.Time) {
	old := l.Find(v.Type)
	if err == nil {
		if old != nil {
			l.Set(Condition{Type: v.Type, Status: corev1.ConditionFalse, Reason: v.Succeeded}, now)
		}
		return
	}
	if old != nil && old.Status != corev1.ConditionTrue {
		l.Remove(v.Type) // the transition is now
	}
	l.SetError(v.Type, fmt.Errorf("%s%w", v.Prefix, err), now)
	l.Find(v.Type).Reason = v.Failed
}

// IgnoreRewording leaves out changes of an untyped object in which at most the texts of these conditions differ. Such a
// change is the reconciler's own report of its last failure. A pass at once would end the pause before the next
// attempt: some refusals, as those with the number of a request in them, read differently each time.
func IgnoreRewording(failures ...string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := content(e.ObjectOld, failures), content(e.ObjectNew, failures)
		return before == nil || e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() ||
			!reflect.DeepEqual(before, after)
	}}
}

// content returns the fields of an untyped object without the texts of these conditions, and without the metadata that
// each write changes; nil for another object.
func content(o client.Object, types []string) map[string]any {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	content := maps.Clone(raw.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		content["metadata"] = metadata
	}
	status, has, err := stored.Value[map[string]any](raw, "status")
	if !has || err != nil {
		return content
	}
	status = maps.Clone(status)
	list, _ := status["conditions"].([]any)
	list = slices.Clone(list)
	for i, c := range list {
		fields, ok := c.(map[string]any)
		if t, _ := fields["type"].(string); ok && slices.Contains(types, t) {
			fields = maps.Clone(fields)
			delete(fields, "message")
			list[i] = fields
		}
	}
	status["conditions"], content["status"] = list, status
	return content
}

// Stalled is the type of the condition that reports why a workload stands still: True where an object must change
// first, Unknown where the workload waits. The reference has no such condition; the name is the one that tools for
// status know.
const Stalled = "Stalled"

// StalledAfter is how long a workload waits for something that may come by itself before that is reported.
const StalledAfter = time.Minute

// Wait is what a workload has been waiting for, by the code of its headline, and since when. The reconciler keeps it
// from pass to pass. The zero value waits for nothing.
type Wait struct {
	For   string
	Since time.Time
	// Done is how much was done when the wait began.
	Done int32
}

// Next is the wait after a pass with this headline. done is how much is done, as the number of updated pods: a rollout
// that takes one pod after the other does not stand still.
func (w Wait) Next(headline note.Note, done int32, now time.Time) Wait {
	if w.For == headline.Code && done <= w.Done {
		return w
	}
	return Wait{For: headline.Code, Since: now, Done: done}
}

// Stalling is what Stall decides upon.
type Stalling struct {
	Now time.Time
	// Headline of the pass; its zero value where nothing stands still.
	Headline note.Note
	// Wait is the one after this pass.
	Wait Wait
	// SameRevision means that the workload goes to the same revision as when the condition was set.
	SameRevision bool
}

// Stall reports the headline of a pass in the condition Stalled: at once where the workload is blocked until an object
// changes, and after a while where it waits. The text stays as long as the reason and the revision do, so that a reason
// costs one write. It returns when to look again; zero for never.
func Stall(l *Conditions, s Stalling) time.Duration {
	old := l.Find(Stalled)
	c := Condition{Type: Stalled, Status: corev1.ConditionTrue, Reason: s.Headline.Code, Message: s.Headline.Message()}
	if s.Headline.Level != note.Blocked {
		c.Status = corev1.ConditionUnknown // it may go on by itself
	}
	rest := s.Wait.Since.Add(StalledAfter).Sub(s.Now)
	switch {
	case old != nil && old.Reason == c.Reason && old.Status == c.Status && s.SameRevision:
		return 0
	case s.Headline.Level != note.Blocked && rest > 0:
		// Nothing is reported that may pass, and nothing taken back that may return: a container that crashes runs in
		// between.
		if s.Headline.Code != "" || old != nil {
			return rest
		}
		return 0
	}
	l.Remove(Stalled)
	if s.Headline.Code != "" {
		l.Set(c, s.Now)
	}
	return 0
}
