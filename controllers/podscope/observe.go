package podscope

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/note"
)

// want returns the scope of the steps, and the SidecarSets that it was computed from.
func (r *Reconciler) want(ctx context.Context) (scope.Scope, []*unstructured.Unstructured, error) {
	if r.options.Off {
		return scope.Scope{}, nil, nil
	}
	in := scope.Input{Client: r.options.client(), Namespace: r.options.Namespace}
	var sets []*unstructured.Unstructured
	for _, source := range r.sources {
		objects, err := r.list(ctx, source.Kind)
		if err != nil {
			return scope.Scope{}, nil, err
		}
		if source.Kind == scope.Kind() {
			sets = objects
		}
		in.Contributions = append(in.Contributions, source.Contribute(objects))
	}
	s, err := scope.Plan(in)
	return s, sets, err
}

// list returns all objects of a kind; none for an empty kind, or for one that is not installed.
func (r *Reconciler) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if !slices.Contains(r.kinds, kind) {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list objects of kind %s: %w", kind.Kind, err)
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// edited reports entries whose policy was changed by another writer, as in an outage. The edit stays; the note explains why pods are
// created without sidecars, or fail.
func edited(have *admissionregistrationv1.MutatingWebhookConfiguration, want []entry) []note.Note {
	var notes []note.Note
	for i := range want {
		at := slices.IndexFunc(have.Webhooks, func(h entry) bool { return h.Name == want[i].Name })
		if at < 0 || ptr.Equal(have.Webhooks[at].FailurePolicy, want[i].FailurePolicy) {
			continue
		}
		notes = append(notes, note.Note{Code: notePolicy, Object: want[i].Name, Text: fmt.Sprintf(
			"somebody has made its failurePolicy %s, which was %s; that stays until the entry is deleted, and comes back as it was",
			ptr.Deref(have.Webhooks[at].FailurePolicy, ""), ptr.Deref(want[i].FailurePolicy, ""))})
	}
	return notes
}

// notePolicy is the code of a note about an entry that another writer has changed.
const notePolicy = "PolicyEdited"

// authority returns the CA of the service, from the main configuration or from an older entry of ours.
func (r *Reconciler) authority(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration) ([]byte, error) {
	if len(r.options.CABundle) > 0 {
		return r.options.CABundle, nil
	}
	other := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.options.Live.Get(ctx, types.NamespacedName{Name: r.options.MainConfiguration}, other); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the main configuration: %w", err)
	}
	return scope.Authority(r.options.client(), other, have), nil
}

// specEvents are all events but those of a status, which changes with every pod.
func specEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}}
}
