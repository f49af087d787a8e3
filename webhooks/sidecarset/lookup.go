package sidecarset

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
	"github.com/kruisekit/kruisekit/webhooks/kinds"
)

// lookup returns the faults that depend on other objects, and the warnings. A lookup that fails is an error, unless the
// set is rejected anyway.
func (w *webhooks) lookup(ctx context.Context, _ kinds.API, c change) (kinds.Finding, error) {
	var found kinds.Finding
	if err := w.judge(ctx, c, &found); err != nil && len(c.Faults)+len(found.Faults) == 0 {
		return found, err
	}
	if text := sidecarsets.Spared(c.Now, scope.Sent(w.options.Namespace)); text != "" {
		found.Warnings = append(found.Warnings, text)
	}
	if len(c.Faults)+len(found.Faults) == 0 && !c.DryRun {
		found.Warnings = append(found.Warnings, w.cover(ctx, c)...)
	}
	return found, nil
}

// judge adds the faults of containers and volumes and those with other objects. An error means that they are
// incomplete.
func (w *webhooks) judge(ctx context.Context, c change, found *kinds.Finding) error {
	if err := w.partFaults(ctx, c, found); err != nil {
		return err
	}
	for _, look := range []func(context.Context, change) (field.ErrorList, error){
		w.revisionFaults, w.metadataFaults, w.baseFaults,
	} {
		faults, err := look(ctx, c)
		if err != nil {
			return err
		}
		found.Faults = append(found.Faults, faults...)
	}
	if len(c.Faults)+len(found.Faults) > 0 {
		return nil
	}
	faults, borne, err := w.conflicts(ctx, c)
	found.Faults = faults
	borne, _ = review.First(borne)
	for _, fault := range borne {
		found.Warnings = append(found.Warnings, fault.Error())
	}
	return err
}

// partFaults adds what the API server finds in containers and volumes that are new or have changed.
func (w *webhooks) partFaults(ctx context.Context, c change, found *kinds.Finding) error {
	now, before := contentOf(c.Raw), contentOf(c.RawBefore)
	if name, _ := now.spec()["namespace"].(string); c.Old && name != "" && now.spec()["namespaceSelector"] != nil {
		found.Warnings = append(found.Warnings,
			"spec.namespaceSelector: does nothing, as spec.namespace goes before it")
	}
	if c.IsUpdate && sameParts(now, before) {
		return nil
	}
	verdict, err := w.judgeParts(ctx, now, true)
	switch {
	case isRefused(err):
		found.Warnings = append(found.Warnings, "spec.containers: are neither defaulted nor validated: "+err.Error())
		return nil
	case err != nil:
		return fmt.Errorf("validate containers and volumes: %w", err)
	}
	found.Faults = verdict.Faults
	found.Warnings = slices.Concat(found.Warnings, review.Unknown(verdict.Unknown),
		review.Newer(verdict.Newer, "reaches new pods alone"))
	return nil
}

// cover requests that API servers send the pods that the set did not select before. A failure is a warning.
func (w *webhooks) cover(ctx context.Context, c change) []string {
	if w.options.Cover == nil || !scope.Widens(c.Now, c.Before) {
		return nil
	}
	if err := w.options.Cover(ctx, c.Now); err != nil {
		log.FromContext(ctx).Info("Failed to cover new pods of a sidecarset",
			"sidecarset", c.Now.Name, "reason", err.Error())
		return []string{"pods that are created in the next moments may go without these sidecars: " + err.Error()}
	}
	return nil
}
