package podscope

import (
	"context"
	"fmt"
	"maps"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/scope"
)

// want is the scope of what is there.
func (r *Reconciler) want(ctx context.Context) (scope.Scope, error) {
	if r.options.Off {
		return scope.Scope{}, nil
	}
	in := scope.Input{
		Client: r.options.client(), Namespace: r.options.Namespace,
		Owned: true, All: r.options.ReadinessGateForAll, Launch: true,
	}
	if r.sets == nil {
		return scope.Compute(in)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(scope.Kind().GroupVersion().WithKind(scope.Kind().Kind + "List"))
	if err := r.sets.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return scope.Scope{}, fmt.Errorf("list sidecarsets: %w", err)
	}
	for i := range list.Items {
		set, _, err := scope.Decode(&list.Items[i])
		if err != nil {
			continue // nothing is known of it, not even its name
		}
		in.Sets = append(in.Sets, set)
	}
	return scope.Compute(in)
}

// authority is the CA of the service, as the main configuration has it, or an older entry of ours.
func (r *Reconciler) authority(ctx context.Context, have *admissionregistrationv1.MutatingWebhookConfiguration) ([]byte, error) {
	if len(r.options.CABundle) > 0 {
		return r.options.CABundle, nil
	}
	other := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.options.Live.Get(ctx, types.NamespacedName{Name: r.options.MainConfiguration}, other); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the main configuration: %w", err)
	}
	for _, configuration := range []*admissionregistrationv1.MutatingWebhookConfiguration{other, have} {
		for i := range configuration.Webhooks {
			c := &configuration.Webhooks[i].ClientConfig
			if c.Service != nil && c.Service.Namespace == r.options.Namespace && c.Service.Name == r.options.Service && len(c.CABundle) > 0 {
				return c.CABundle, nil
			}
		}
	}
	return nil, nil
}

// setEvents are all but those of a set's status, which changes with every pod.
func setEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}}
}
