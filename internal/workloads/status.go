package workloads

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/conditions"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// Status is a status to write.
type Status struct {
	// Object is a copy of the workload with the new status.
	Object client.Object
	// Required are the counters that the schema requires. They are in a patch also where they are the same: where nothing is stored yet,
	// they are missing.
	Required map[string]any
	// Conditions are those of the new status.
	Conditions conditions.List
	// Scaling and Updating are what of the spec is invalid. An event announces each once.
	Scaling, Updating error
}

// WriteStatus sends one patch, if the status changed.
func (k *Kit) WriteStatus(ctx context.Context, o *Observation, s Status) error {
	w := statuspatch.Writer{Client: k.Client, Kind: stored.Kind{GVK: o.Kind}}
	answer, err := w.Write(ctx, o.Object, s.Object, s.Required)
	if err != nil {
		return err
	}
	failures := map[string]string{}
	for _, c := range s.Conditions {
		failures[c.Type] = c.Message
	}
	k.memory.Note(o.Key(), func(known *Known) { known.Failures = failures })
	if answer != nil {
		k.emitInvalid(o, k.options.Scaling, s.Scaling)
		k.emitInvalid(o, k.options.Updating, s.Updating)
	}
	return nil
}
