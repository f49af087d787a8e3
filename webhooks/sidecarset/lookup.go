package sidecarset

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/sidecar"
)

// revisionFaults finds and restores the pinned revision, if the pin changed.
func (w *Webhooks) revisionFaults(ctx context.Context, r change) (field.ErrorList, error) {
	set, before := r.now.set, r.stored()
	pin := set.Spec.InjectionStrategy.Revision
	if pin == nil || pin.RevisionName == nil && pin.CustomVersion == nil ||
		before != nil && reflect.DeepEqual(before.Spec.InjectionStrategy.Revision, pin) {
		return nil, nil
	}
	at := field.NewPath("spec", "injectionStrategy", "revision")
	revisions, err := w.revisions(ctx, set.Name, pin)
	if err != nil {
		return nil, err
	}
	parsed, _ := sidecar.Parse(set) // validation.SidecarSet returns its faults
	former, err := sidecar.Former(parsed, revisions)
	if err == nil {
		_, err = sidecar.Restore(parsed, former)
	}
	var wrong *sidecar.FieldError
	switch {
	case errors.As(err, &wrong):
		return field.ErrorList{field.Invalid(at, named(pin), wrong.Err.Error())}, nil
	case err != nil:
		return field.ErrorList{field.Invalid(at, named(pin), err.Error())}, nil
	}
	return nil, nil
}

// named returns the name or the version of a pin.
func named(pin *appsv1beta1.SidecarSetInjectRevision) string {
	if pin.RevisionName != nil {
		return *pin.RevisionName
	}
	return *pin.CustomVersion
}

// revisions returns the candidates of a pin.
func (w *Webhooks) revisions(
	ctx context.Context, set string, pin *appsv1beta1.SidecarSetInjectRevision,
) ([]*appsv1.ControllerRevision, error) {
	if pin.RevisionName != nil {
		one := &appsv1.ControllerRevision{}
		err := w.api.Get(ctx, client.ObjectKey{Namespace: w.options.Namespace, Name: *pin.RevisionName}, one)
		switch {
		case apierrors.IsNotFound(err) || *pin.RevisionName == "":
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read revision %s: %w", *pin.RevisionName, err)
		}
		return []*appsv1.ControllerRevision{one}, nil
	}
	list := &appsv1.ControllerRevisionList{}
	labels := client.MatchingLabels{
		appsv1beta1.SidecarSetNameLabel: set, appsv1beta1.SidecarSetCustomVersionLabel: *pin.CustomVersion,
	}
	if err := w.api.List(ctx, list, client.InNamespace(w.options.Namespace), labels); err != nil {
		return nil, fmt.Errorf("list revisions of custom version %s: %w", *pin.CustomVersion, err)
	}
	all := make([]*appsv1.ControllerRevision, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// baseFaults looks for the base of a new canary.
func (w *Webhooks) baseFaults(ctx context.Context, r change) (field.ErrorList, error) {
	base := sidecar.BaseOf(r.now.set)
	if base == "" || base == r.now.set.Name || r.before != nil && sidecar.BaseOf(r.before.set) == base {
		return nil, nil
	}
	at := field.NewPath("metadata", "annotations").Key(appsv1beta1.SidecarSetBaseAnnotation)
	raw := stored.Untyped(appsv1beta1.GroupVersion.WithKind("SidecarSet"))
	err := w.api.Get(ctx, client.ObjectKey{Name: base}, raw)
	switch {
	case apierrors.IsNotFound(err):
		return field.ErrorList{field.NotFound(at, base)}, nil
	case err != nil:
		return nil, fmt.Errorf("read the base %s: %w", base, err)
	case raw.GetAnnotations()[appsv1beta1.SidecarSetCanaryAnnotation] == "true":
		return field.ErrorList{field.Invalid(at, base, "is a canary itself")}, nil
	}
	return nil, nil
}

// taken reports whether a set of that name exists, so that the creation will fail, as in clients that create first and
// update then. A set that only the cache still has does not exist.
func (w *Webhooks) taken(ctx context.Context, name string) bool {
	for _, reader := range []client.Reader{w.sets, w.api} {
		if reader.Get(ctx, client.ObjectKey{Name: name},
			stored.Untyped(appsv1beta1.GroupVersion.WithKind("SidecarSet"))) != nil {
			return false
		}
	}
	return true
}
