package workloads

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Report is a status to write.
type Report struct {
	// Object is a copy of the workload with the new status.
	Object client.Object
	// Required are the counters that the schema requires. They are in a patch also where they are the same: where
	// nothing is stored yet, they are missing.
	Required map[string]any
	// Conditions are those of the new status.
	Conditions conditions.List
	// Scaling and Updating are what of the spec is invalid. An event announces each once.
	Scaling, Updating error
}

// write returns the write of the status; nil where the status stays the same.
func (r *Report) write(o *Observation) (*write.Write, error) {
	return stored.WriteStatus(stored.Kind{GVK: o.Kind}, o.Object, r.Object, r.Required)
}

// failures are the messages of the conditions, by their type.
func (r *Report) failures() map[string]string {
	failures := map[string]string{}
	for _, c := range r.Conditions {
		failures[c.Type] = c.Message
	}
	return failures
}

// Report writes a status, if it changed, and emits what the status reports for the first time.
func (k *Kit) Report(ctx context.Context, o *Observation, r Report) error {
	w, err := r.write(o)
	if err != nil {
		return err
	}
	if w != nil {
		_, err = k.Send(ctx, o.Key(), w)
		switch {
		case err == nil:
			k.emitInvalid(o, k.options.Scaling, r.Scaling)
			k.emitInvalid(o, k.options.Updating, r.Updating)
		case !write.IsOutdated(err):
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	k.memory.Note(o.Key(), func(known *Known) { known.Failures = r.failures() })
	return nil
}

// GiveUp reports why a pass ends before anything is known of the pods.
func (k *Kit) GiveUp(ctx context.Context, o *Observation, r Report, why error) error {
	err := k.Report(ctx, o, r)
	if err == nil && o.Invalid != nil {
		return terminal(why) // only another spec can mend it
	}
	return errors.Join(why, err)
}
