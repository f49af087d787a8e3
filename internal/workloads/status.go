package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/conditions"
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
	// scaling and updating are what of the spec is invalid. An event announces each once: what fails the creation of
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

// Collisions returns the collision count of a status after a pass failed. Where the name of the revision is taken, the
// next pass resolves another one.
func Collisions(before *int32, why error) *int32 {
	var taken *revision.TakenError
	if !errors.As(why, &taken) {
		return before
	}
	return ptr.To(ptr.Deref(before, 0) + 1)
}
