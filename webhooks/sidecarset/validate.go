package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/podtemplate"
	"github.com/kruisekit/kruisekit/internal/review"
	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/sidecarsets"
)

// Validate rejects an invalid object, with every fault.
func (w *Webhooks) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !review.Concerns(req) || review.IsDeleting(req) {
		return admission.Allowed("")
	}
	if answer := review.Oversized(req, bounded()...); answer != nil {
		return *answer
	}
	version, err := review.VersionOf(req, resource)
	if err != nil {
		return review.BadRequest(err)
	}
	var r change
	if r.now, err = read(version, req.Object.Raw); err != nil {
		return unread(req.Name, err)
	}
	if req.Operation == admissionv1.Update {
		if before, err := read(version, req.OldObject.Raw); err == nil {
			r.before = &before
		}
		// A stored object that cannot be decoded may be replaced by any that can.
	}
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	found, err := w.judge(ctx, r)
	if err != nil && len(found.faults) == 0 {
		return review.Undecided(err)
	}
	name, _ := r.now.content.spec()["namespace"].(string)
	namespaced := name != "" // v1alpha1 only
	answer := review.Judged(groupKind(), r.now.set.Name, inVersion(version, found.faults, namespaced),
		inVersion(version, found.borne, namespaced))
	answer.Warnings = append(answer.Warnings, review.Unknown(found.unknown)...)
	answer.Warnings = append(answer.Warnings, warningsOfVersion(version, r.now.content)...)
	answer.Warnings = append(answer.Warnings, sidecarsets.Warnings(r.now.set)...)
	if text := sidecarsets.Spared(r.now.set, scope.Sent(w.options.Namespace)); text != "" {
		answer.Warnings = append(answer.Warnings, text)
	}
	if found.refused != nil {
		answer.Warnings = append(answer.Warnings,
			"spec.containers: are neither defaulted nor validated: "+found.refused.Error())
	}
	if len(found.faults) == 0 && !ptr.Deref(req.DryRun, false) {
		answer.Warnings = append(answer.Warnings, w.cover(ctx, r)...)
	}
	return answer
}

// unread rejects an object that cannot be decoded.
func unread(name string, err error) admission.Response {
	var at *field.Error
	if errors.As(err, &at) {
		return review.Invalid(groupKind(), name, field.ErrorList{at})
	}
	return review.BadRequest(err)
}

func groupKind() schema.GroupKind { return appsv1beta1.GroupVersion.WithKind("SidecarSet").GroupKind() }

// cover requests that API servers send the pods that the set did not select before. A failure is a warning.
func (w *Webhooks) cover(ctx context.Context, r change) []string {
	if w.options.Cover == nil || !scope.Widens(r.now.set, r.stored()) || r.before == nil && w.taken(ctx, r.now.set.Name) {
		return nil
	}
	if err := w.options.Cover(ctx, r.now.set); err != nil {
		log.FromContext(ctx).Info("Failed to cover new pods of a sidecarset",
			"sidecarset", r.now.set.Name, "reason", err.Error())
		return []string{"pods that are created in the next moments may go without these sidecars: " + err.Error()}
	}
	return nil
}

// change is what is done to a SidecarSet, under review.
type change struct {
	now object
	// before is nil when the object is new.
	before *object
}

// stored is nil when the object is new.
func (r change) stored() *appsv1beta1.SidecarSet {
	if r.before == nil {
		return nil
	}
	return r.before.set
}

// findings are the faults of a change.
type findings struct {
	// faults reject the set.
	faults field.ErrorList
	// borne are faults that the stored set has already: they are warnings.
	borne field.ErrorList
	// unknown are the paths of unknown fields.
	unknown []string
	// refused is why the API server did not judge containers and volumes, though the set may be admitted.
	refused error
}

// judge returns the faults of the set itself, of the change, and of related objects. An error means that the faults are
// incomplete.
func (w *Webhooks) judge(ctx context.Context, r change) (found findings, err error) {
	set, before := r.now.set, r.stored()
	var had field.ErrorList
	if before != nil {
		had = sidecarsets.Validate(before)
	}
	found.faults, found.borne = review.Added(sidecarsets.Validate(set), had)
	if before != nil {
		found.faults = append(found.faults, sidecarsets.ValidateUpdate(set, before)...)
	}
	parts, err := w.partVerdict(ctx, r)
	if isRefused(err) {
		found.refused, err = err, nil
	}
	if err != nil {
		return found, err
	}
	found.unknown = parts.Unknown
	found.faults = append(found.faults, without(parts.Faults, found.faults)...)
	for _, look := range []func(context.Context, change) (field.ErrorList, error){
		w.revisionFaults, w.metadataFaults, w.baseFaults,
	} {
		more, err := look(ctx, r)
		if err != nil {
			return found, err
		}
		found.faults = append(found.faults, without(more, found.faults)...)
	}
	if len(found.faults) > 0 {
		return found, nil
	}
	faults, more, err := w.conflicts(ctx, set, before)
	found.faults, found.borne = faults, append(found.borne, more...)
	return found, err
}

// partVerdict asks the API server about containers and volumes that are new or have changed.
func (w *Webhooks) partVerdict(ctx context.Context, r change) (podtemplate.Verdict, error) {
	if r.before != nil && sameParts(r.now.content, r.before.content) {
		return podtemplate.Verdict{}, nil
	}
	verdict, err := w.judgeParts(ctx, r.now.content, true)
	if err != nil {
		return podtemplate.Verdict{}, fmt.Errorf("validate containers and volumes: %w", err)
	}
	return verdict, nil
}

// without drops faults that were found already.
func without(faults, found field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(faults), func(f *field.Error) bool {
		return slices.ContainsFunc(found, func(g *field.Error) bool { return f.Field == g.Field && f.Type == g.Type })
	})
}

// warningsOfVersion returns the warnings about fields of this version only.
func warningsOfVersion(version review.Version, c content) []string {
	namespace, _ := c.spec()["namespace"].(string)
	if version != review.Old || namespace == "" || c.spec()["namespaceSelector"] == nil {
		return nil
	}
	return []string{"spec.namespaceSelector: does nothing, as spec.namespace goes before it"}
}
