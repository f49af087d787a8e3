package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
)

// revisionFaults finds and restores the pinned revision, if the pin changed.
func (w *webhooks) revisionFaults(ctx context.Context, c change) (field.ErrorList, error) {
	set, before := c.Now, c.Before
	pin := set.Spec.InjectionStrategy.Revision
	if pin == nil || pin.RevisionName == nil && pin.CustomVersion == nil ||
		c.IsUpdate && reflect.DeepEqual(before.Spec.InjectionStrategy.Revision, pin) {
		return nil, nil
	}
	at := field.NewPath("spec", "injectionStrategy", "revision")
	revisions, err := stored.PinnedRevisions(ctx, w.api, w.options.Namespace, set)
	if err != nil {
		return nil, fmt.Errorf("read revisions of SidecarSet %s: %w", set.Name, err)
	}
	parsed, _ := sidecar.Parse(set) // sidecarsets.Validate returns its faults
	former, err := sidecar.Former(parsed, revisions)
	if err == nil {
		_, err = sidecar.Restore(parsed, former)
	}
	var wrong *sidecar.FieldError
	if errors.As(err, &wrong) {
		err = wrong.Err
	}
	if err != nil {
		return field.ErrorList{field.Invalid(at, named(pin), err.Error())}, nil
	}
	return nil, nil
}

// named returns the name or the version of a pin.
func named(pin *v1beta1.SidecarSetInjectRevision) string {
	if pin.RevisionName != nil {
		return *pin.RevisionName
	}
	return *pin.CustomVersion
}

// baseFaults looks for the base of a new canary.
func (w *webhooks) baseFaults(ctx context.Context, c change) (field.ErrorList, error) {
	base := sidecar.BaseOf(c.Now)
	if base == "" || base == c.Now.Name || c.IsUpdate && sidecar.BaseOf(c.Before) == base {
		return nil, nil
	}
	at := field.NewPath("metadata", "annotations").Key(v1beta1.SidecarSetBaseAnnotation)
	raw := untyped()
	err := w.api.Get(ctx, client.ObjectKey{Name: base}, raw)
	switch {
	case apierrors.IsNotFound(err):
		return field.ErrorList{field.NotFound(at, base)}, nil
	case err != nil:
		return nil, fmt.Errorf("read the base %s: %w", base, err)
	case raw.GetAnnotations()[v1beta1.SidecarSetCanaryAnnotation] == "true":
		return field.ErrorList{field.Invalid(at, base, "is a canary itself")}, nil
	}
	return nil, nil
}
