package podbench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// observedCache is the cache of a manager that reports which versions of the objects its event handlers have seen.
type observedCache struct {
	cache.Cache
	options cache.Options

	mu       sync.Mutex
	handlers []*handler
}

func (o *observed) newCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	made, err := cache.New(config, options)
	if err != nil {
		return nil, err
	}
	o.cache = &observedCache{Cache: made, options: options}
	return o.cache, nil
}

func (o *observed) add(q *queue) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queues = append(o.queues, q)
}

// left returns how often each queue was added to, and the work that is left.
func (o *observed) left() (added []int, work string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, q := range o.queues {
		what, n := q.left()
		added = append(added, n)
		if what != "" {
			work = what
		}
	}
	return added, work
}

// GetInformer implements cache.Informers.
func (c *observedCache) GetInformer(
	ctx context.Context, o client.Object, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	made, err := c.Cache.GetInformer(ctx, o, opts...)
	if err != nil {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(o, c.options.Scheme)
	return &observedInformer{Informer: made, cache: c, kind: kind}, err
}

// GetInformerForKind implements cache.Informers.
func (c *observedCache) GetInformerForKind(
	ctx context.Context, kind schema.GroupVersionKind, opts ...cache.InformerGetOption,
) (cache.Informer, error) {
	made, err := c.Cache.GetInformerForKind(ctx, kind, opts...)
	if err != nil {
		return nil, err
	}
	return &observedInformer{Informer: made, cache: c, kind: kind}, nil
}

// observedInformer observes the handlers that are added to it.
type observedInformer struct {
	cache.Informer
	cache *observedCache
	kind  schema.GroupVersionKind
}

// AddEventHandlerWithOptions implements cache.Informer: it is what controller-runtime calls for the sources of
// controllers.
func (i *observedInformer) AddEventHandlerWithOptions(
	h toolscache.ResourceEventHandler, o toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	observed := &handler{ResourceEventHandler: h, kind: i.kind, seen: map[types.UID]string{}}
	i.cache.mu.Lock()
	i.cache.handlers = append(i.cache.handlers, observed)
	i.cache.mu.Unlock()
	return i.Informer.AddEventHandlerWithOptions(observed, o)
}

// handler records the version of each object when the handler of the source has queued what follows from it.
type handler struct {
	toolscache.ResourceEventHandler
	kind schema.GroupVersionKind

	mu   sync.Mutex
	seen map[types.UID]string
}

// OnAdd implements toolscache.ResourceEventHandler.
func (h *handler) OnAdd(o any, initial bool) {
	h.ResourceEventHandler.OnAdd(o, initial)
	h.record(o, false)
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h *handler) OnUpdate(before, o any) {
	h.ResourceEventHandler.OnUpdate(before, o)
	h.record(o, false)
}

// OnDelete implements toolscache.ResourceEventHandler.
func (h *handler) OnDelete(o any) {
	h.ResourceEventHandler.OnDelete(o)
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	h.record(o, true)
}

func (h *handler) record(o any, deleted bool) {
	object, ok := o.(client.Object)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if deleted {
		delete(h.seen, object.GetUID())
	} else {
		h.seen[object.GetUID()] = object.GetResourceVersion()
	}
}

// behind describes a kind whose handlers have not seen what the API server has.
func (c *observedCache) behind(ctx context.Context, live client.Client) (what string, err error) {
	c.mu.Lock()
	handlers := c.handlers
	c.mu.Unlock()
	stored := map[schema.GroupVersionKind]map[types.UID]string{}
	for _, h := range handlers {
		if stored[h.kind] == nil {
			if stored[h.kind], err = c.list(ctx, live, h.kind); err != nil {
				return "", fmt.Errorf("list %s: %w", h.kind.Kind, err)
			}
		}
		h.mu.Lock()
		same := maps.Equal(h.seen, stored[h.kind])
		seen := len(h.seen)
		h.mu.Unlock()
		if !same {
			return fmt.Sprintf("a handler has seen %d %ss, %d are stored, or of other versions",
				seen, h.kind.Kind, len(stored[h.kind])), nil
		}
	}
	return "", nil
}

// list returns the versions of the stored objects that the cache selects.
func (c *observedCache) list(
	ctx context.Context, live client.Client, kind schema.GroupVersionKind,
) (map[types.UID]string, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	namespaced, err := live.IsObjectNamespaced(object)
	if err != nil {
		return nil, err
	}
	all := map[types.UID]string{}
	for namespace, o := range c.selected(kind, namespaced) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		o.Namespace = namespace
		if err := live.List(ctx, list, &o); err != nil {
			return nil, err
		}
		for i := range list.Items {
			all[list.Items[i].UID] = list.Items[i].ResourceVersion
		}
	}
	return all, nil
}

// selected returns what the cache lists of a kind, by namespace.
func (c *observedCache) selected(kind schema.GroupVersionKind, namespaced bool) map[string]client.ListOptions {
	namespaces, label, field := c.options.DefaultNamespaces, c.options.DefaultLabelSelector, c.options.DefaultFieldSelector
	for object, by := range c.options.ByObject {
		if its, err := apiutil.GVKForObject(object, c.options.Scheme); err != nil || its != kind {
			continue
		}
		if by.Namespaces != nil {
			namespaces = by.Namespaces
		}
		label, field = cmp.Or(by.Label, label), cmp.Or(by.Field, field)
	}
	if !namespaced || len(namespaces) == 0 {
		namespaces = map[string]cache.Config{corev1.NamespaceAll: {}}
	}
	all := map[string]client.ListOptions{}
	for namespace, config := range namespaces {
		all[namespace] = client.ListOptions{
			LabelSelector: cmp.Or(config.LabelSelector, label), FieldSelector: cmp.Or(config.FieldSelector, field),
		}
	}
	return all
}
