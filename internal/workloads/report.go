package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/revision"
)

// Reporter reports the status S of workloads T, whose conditions are C.
type Reporter[T client.Object, S, C any] struct {
	// Status returns the status of a workload.
	Status func(T) *S
	// Fields returns what the statuses of all kinds have.
	Fields func(*S) Fields[C]
	// Required returns the counters that the schema requires, by their names.
	Required func(*S) map[string]any
	// Fail sets the condition about pods that cannot be created.
	Fail func(list *conditions.List, why error, now time.Time)
}

// Fields are those that the statuses of all kinds have.
type Fields[C any] struct {
	ObservedGeneration *int64
	CollisionCount     **int32
	Conditions         *[]C
}

// Conditions returns a copy of the conditions of a status.
func (r Reporter[T, S, C]) Conditions(status *S) conditions.List {
	return converted[conditions.List](*r.Fields(status).Conditions)
}

// SetConditions replaces the conditions of a status.
func (r Reporter[T, S, C]) SetConditions(status *S, list conditions.List) {
	*r.Fields(status).Conditions = converted[[]C](list)
}

// converted returns conditions as others, whose fields have the same names in JSON.
func converted[To any](from any) (to To) {
	text, _ := json.Marshal(from) //nolint:errchkjson // strings and times
	_ = json.Unmarshal(text, &to)
	return to
}

// Stall reports in the condition Stalled why a workload stands still. sameRevision means that the workload goes to the
// same revision as the stored status does.
func (p *Plan) Stall(o *Observation, list *conditions.List, sameRevision bool) {
	var headline note.Note
	if p.Runs(o) {
		headline, _ = note.Headline(p.Notes())
	}
	before := o.Known.wait
	if !sameRevision {
		before = conditions.Wait{}
	}
	p.wait = before.Next(headline, p.Pass.Counts().UpdatedPods, o.Now)
	p.After.In(conditions.Stall(list, conditions.Stalling{
		Now: o.Now, Headline: headline, Wait: p.wait, SameRevision: sameRevision,
	}))
}

// Report returns the report of a status after a pass. An event announces each fault of the spec once: what fails the
// creation of pods, and what has a safe reading.
func (r Reporter[T, S, C]) Report(o *Observation, p *Plan, status *S) (Report, error) {
	return r.report(o, status, Report{Scaling: p.Invalid, Updating: o.Reported})
}

// GiveUp reports why a pass ends before anything is known of the pods.
func (r Reporter[T, S, C]) GiveUp(ctx context.Context, k *Kit, o *Observation, why error) error {
	fresh, err := r.copyOf(o)
	if err != nil {
		return errors.Join(why, err)
	}
	status := r.Status(fresh)
	fields := r.Fields(status)
	*fields.ObservedGeneration = o.Object.GetGeneration()
	var taken *revision.TakenError
	if errors.As(why, &taken) { // the next pass resolves another name
		*fields.CollisionCount = ptr.To(ptr.Deref(*fields.CollisionCount, 0) + 1)
	}
	list := r.Conditions(status)
	r.Fail(&list, why, o.Now)
	r.SetConditions(status, list)
	report, err := r.report(o, status, Report{Scaling: o.Invalid})
	if err != nil {
		return errors.Join(why, err)
	}
	return k.GiveUp(ctx, o, report, why)
}

func (r Reporter[T, S, C]) report(o *Observation, status *S, of Report) (Report, error) {
	fresh, err := r.copyOf(o)
	if err != nil {
		return of, err
	}
	*r.Status(fresh) = *status
	of.Object, of.Conditions, of.Required = fresh, r.Conditions(status), r.Required(status)
	return of, nil
}

func (Reporter[T, S, C]) copyOf(o *Observation) (T, error) {
	fresh, ok := o.Object.DeepCopyObject().(T)
	if !ok {
		return fresh, fmt.Errorf("report status: %T is no %T", o.Object, fresh)
	}
	return fresh, nil
}
