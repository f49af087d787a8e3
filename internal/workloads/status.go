package workloads

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/workload"
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
	return statuspatch.Write(stored.Kind{GVK: o.Kind}, o.Object, r.Object, r.Required)
}

// failures are the messages of the conditions, by their type.
func (r *Report) failures() map[string]string {
	failures := map[string]string{}
	for _, c := range r.Conditions {
		failures[c.Type] = c.Message
	}
	return failures
}

// Report writes a status outside of a pass, as one that says why there is none.
func (k *Kit) Report(ctx context.Context, o *Observation, r Report) error {
	w, err := r.write(o)
	if err != nil {
		return err
	}
	if w != nil {
		err = driver.Run(ctx, as(actionReport, driver.Writes(w)), driver.Options[*workload.Write]{
			Send: runtimeclient.Sender(k.Client, k.Live), Now: k.Now,
			Answered: func(_ *workload.Write, _ write.Object, err error) { k.emitReport(o, r, err) },
		})
	}
	if err == nil {
		k.memory.Note(o.Key(), func(known *Known) { known.Failures = r.failures() })
	}
	return err
}

// emitReport emits what a status that was written says for the first time.
func (k *Kit) emitReport(o *Observation, r Report, err error) {
	if err == nil {
		k.emitInvalid(o, k.options.Scaling, r.Scaling)
		k.emitInvalid(o, k.options.Updating, r.Updating)
	}
}

// GiveUp reports why a pass ends before anything is known of the pods.
func (k *Kit) GiveUp(ctx context.Context, o *Observation, r Report, why error) error {
	err := k.Report(ctx, o, r)
	if err == nil && o.Invalid != nil {
		return terminal(why) // only another spec can mend it
	}
	return errors.Join(why, err)
}
