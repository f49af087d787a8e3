package podscope

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/scope"
)

// want is the scope of what is there, and the sets that it is of.
func (r *Reconciler) want(ctx context.Context) (scope.Scope, []*appsv1beta1.SidecarSet, error) {
	if r.options.Off {
		return scope.Scope{}, nil, nil
	}
	in := scope.Input{
		Client: r.options.client(), Namespace: r.options.Namespace,
		Owned: true, All: r.options.ReadinessGateForAll, Launch: true,
	}
	if r.sets != nil {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(scope.Kind().GroupVersion().WithKind(scope.Kind().Kind + "List"))
		if err := r.sets.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return scope.Scope{}, nil, fmt.Errorf("list sidecarsets: %w", err)
		}
		for i := range list.Items {
			set, _, err := scope.Decode(&list.Items[i])
			if err != nil {
				continue // nothing is known of it, not even its name
			}
			in.Sets = append(in.Sets, set)
		}
	}
	s, err := scope.Compute(in)
	return s, in.Sets, err
}

// edited are the entries whose policy somebody else has changed, as in an outage. That stays, but nobody should have to wonder
// later why pods go without sidecars, or wait.
func edited(have *admissionregistrationv1.MutatingWebhookConfiguration, want []entry) []scope.Note {
	var notes []scope.Note
	for i := range want {
		at := slices.IndexFunc(have.Webhooks, func(h entry) bool { return h.Name == want[i].Name })
		if at < 0 || ptr.Equal(have.Webhooks[at].FailurePolicy, want[i].FailurePolicy) {
			continue
		}
		notes = append(notes, scope.Note{Code: notePolicy, Object: want[i].Name, Text: fmt.Sprintf(
			"somebody has made its failurePolicy %s, which was %s; that stays until the entry is deleted, and comes back as it was",
			ptr.Deref(have.Webhooks[at].FailurePolicy, ""), ptr.Deref(want[i].FailurePolicy, ""))})
	}
	return notes
}

// notePolicy is the code of a note about an entry that somebody else has changed.
const notePolicy = "PolicyEdited"

// authority is the CA of the service, as the main configuration has it, or an older entry of ours.
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

// setEvents are all but those of a set's status, which changes with every pod.
func setEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}}
}
