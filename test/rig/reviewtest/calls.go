package reviewtest

import (
	"context"
	"maps"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Calls counts what webhooks ask of the API server.
type Calls struct {
	mu   sync.Mutex
	made map[string]int
}

// Of runs what is measured, and gives the calls meanwhile by their verbs.
func (c *Calls) Of(what func()) map[string]int {
	c.mu.Lock()
	before := maps.Clone(c.made)
	c.mu.Unlock()
	what()
	c.mu.Lock()
	defer c.mu.Unlock()
	made := map[string]int{}
	for verb, n := range c.made {
		if more := n - before[verb]; more > 0 {
			made[verb] = more
		}
	}
	return made
}

func (c *Calls) add(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		c.made = map[string]int{}
	}
	c.made[verb]++
}

// counting gives a client whose every call is counted.
func (c *Calls) counting(api client.WithWatch) client.Client {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(
			ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			c.add("get")
			return w.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			c.add("list")
			return w.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			c.add("create")
			return w.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			c.add("update")
			return w.Update(ctx, obj, opts...)
		},
		Patch: func(
			ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption,
		) error {
			c.add("patch")
			return w.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, w client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			c.add("delete")
			return w.Delete(ctx, obj, opts...)
		},
	})
}
