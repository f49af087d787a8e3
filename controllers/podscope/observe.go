package podscope

import (
	"context"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/internal/scope/entries"
	"github.com/kruisekit/kruisekit/internal/scope/steady"
)

// observe reads what a pass is decided upon, all of it from caches.
func (r *Reconciler) observe(ctx context.Context) (o entries.Observation, err error) {
	o.Now = r.options.Now()
	for name, into := range map[string]**admissionregistrationv1.MutatingWebhookConfiguration{
		r.options.Configuration: &o.Pods, r.options.Provisional: &o.Provisional, r.options.MainConfiguration: &o.Main,
	} {
		if name == "" {
			continue
		}
		if *into, err = r.configuration(ctx, name); err != nil {
			return o, err
		}
	}
	err = r.want(ctx, &o)
	return o, err
}

// configuration reads one from its cache; nil if it does not exist.
func (r *Reconciler) configuration(
	ctx context.Context, name string,
) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	c := r.form.empty()
	err := r.configurations[name].Get(ctx, types.NamespacedName{Name: name}, c, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", name, err)
	}
	return r.form.read(c), nil
}

// names of the configurations.
func (r *Reconciler) names() []string {
	return slices.DeleteFunc([]string{r.options.Configuration, r.options.Provisional, r.options.MainConfiguration},
		func(name string) bool { return name == "" })
}

// want sets the scope of the steps, and the SidecarSets that it was planned from.
func (r *Reconciler) want(ctx context.Context, o *entries.Observation) error {
	if r.options.Off {
		return nil
	}
	var all []scope.Contribution
	for _, source := range r.sources {
		objects, err := r.list(ctx, source.Kind)
		if err != nil {
			return err
		}
		if source.Kind == scope.Kind() {
			o.Sets = objects
		}
		all = append(all, source.Contribute(objects))
	}
	o.Steady = steady.Next(all, r.state.Steady,
		steady.Policy{Keep: r.options.KeepRemoved, Changes: r.options.Changes}, o.Now)
	in := scope.Input{Client: r.options.client(), Namespace: r.options.Namespace, Contributions: o.Steady.Contributions}
	var err error
	if r.form.disruptions {
		in.Client = r.options.reach().At(scope.DisruptionPath)
		o.Want, err = scope.Disruptions(in, scope.Operations{
			Deletes: !r.options.NoDeletes, Updates: r.options.Updates, Exempt: r.options.ExemptUsers,
		})
	} else {
		o.Want, err = scope.Plan(in)
	}
	return err
}

// list returns all objects of a kind; none for an empty kind, or for one that is not followed yet.
func (r *Reconciler) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	if !r.followed[kind] {
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

// specEvents are all events but those of a status, which changes with every pod.
func specEvents() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}}
}
