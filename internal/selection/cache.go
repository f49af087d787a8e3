package selection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// selected is a cache that shows the selected objects.
type selected struct {
	cache.Cache

	of     Of
	scheme *runtime.Scheme
}

// concerns reports whether the selector is about the kind of an object or of a list.
func (c selected) concerns(object runtime.Object) (schema.GroupKind, bool, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return schema.GroupKind{}, false, fmt.Errorf("find kind: %w", err)
	}
	kind := schema.GroupKind{Group: gvk.Group, Kind: strings.TrimSuffix(gvk.Kind, "List")}
	return kind, slices.Contains(c.of.Kinds, kind), nil
}

// Get reads an object. One that is not selected is not found.
func (c selected) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	kind, concerned, err := c.concerns(into)
	if err != nil {
		return err
	}
	if err := c.Cache.Get(ctx, key, into, o...); err != nil || !concerned {
		return err //nolint:wrapcheck // the cache of the manager
	}
	if !c.of.Selector.Matches(labels.Set(into.GetLabels())) {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	return nil
}

// List reads the objects that are selected.
func (c selected) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	_, concerned, err := c.concerns(into)
	if err != nil {
		return err
	}
	if concerned {
		o = append(slices.Clone(o), narrowed{c.of.Selector})
	}
	return c.Cache.List(ctx, into, o...) //nolint:wrapcheck // the cache of the manager
}

// narrowed adds a selector to the one of the options before it.
type narrowed struct{ selector labels.Selector }

// ApplyToList implements client.ListOption.
func (n narrowed) ApplyToList(o *client.ListOptions) {
	if o.LabelSelector == nil {
		o.LabelSelector = n.selector
		return
	}
	requirements, selectable := n.selector.Requirements()
	if !selectable {
		o.LabelSelector = labels.Nothing()
		return
	}
	o.LabelSelector = o.LabelSelector.Add(requirements...)
}

// GetInformer returns an informer whose handlers get the events of selected objects.
func (c selected) GetInformer(
	ctx context.Context, object client.Object, o ...cache.InformerGetOption,
) (cache.Informer, error) {
	_, concerned, err := c.concerns(object)
	if err != nil {
		return nil, err
	}
	return c.informer(concerned)(c.Cache.GetInformer(ctx, object, o...))
}

// GetInformerForKind is GetInformer by kind.
func (c selected) GetInformerForKind(
	ctx context.Context, kind schema.GroupVersionKind, o ...cache.InformerGetOption,
) (cache.Informer, error) {
	return c.informer(slices.Contains(c.of.Kinds, kind.GroupKind()))(c.Cache.GetInformerForKind(ctx, kind, o...))
}

func (c selected) informer(concerned bool) func(cache.Informer, error) (cache.Informer, error) {
	return func(i cache.Informer, err error) (cache.Informer, error) {
		if err != nil || !concerned {
			return i, err
		}
		return informer{i, c.of.Selector}, nil
	}
}

// informer is an informer whose handlers get the events of selected objects.
type informer struct {
	cache.Informer

	selector labels.Selector
}

type (
	handler      = toolscache.ResourceEventHandler
	registration = toolscache.ResourceEventHandlerRegistration
)

// AddEventHandler adds a handler.
func (i informer) AddEventHandler(h handler) (registration, error) { //nolint:ireturn // the interface of informers
	return i.Informer.AddEventHandler(i.filtered(h)) //nolint:wrapcheck // the informer of the manager
}

// AddEventHandlerWithResyncPeriod adds a handler with a period of its own.
func (i informer) AddEventHandlerWithResyncPeriod( //nolint:ireturn // the interface of informers
	h handler, resync time.Duration,
) (registration, error) {
	return i.Informer.AddEventHandlerWithResyncPeriod(i.filtered(h), resync) //nolint:wrapcheck // see AddEventHandler
}

// AddEventHandlerWithOptions adds a handler with options.
func (i informer) AddEventHandlerWithOptions( //nolint:ireturn // the interface of informers
	h handler, o toolscache.HandlerOptions,
) (registration, error) {
	return i.Informer.AddEventHandlerWithOptions(i.filtered(h), o) //nolint:wrapcheck // see AddEventHandler
}

func (i informer) filtered(h handler) handler { //nolint:ireturn // the interface of informers
	return toolscache.FilteringResourceEventHandler{FilterFunc: i.selects, Handler: h}
}

// selects reports whether an object is selected, or was in the last state that is known of it.
func (i informer) selects(object any) bool {
	if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	o, is := object.(client.Object)
	return is && i.selector.Matches(labels.Set(o.GetLabels()))
}
