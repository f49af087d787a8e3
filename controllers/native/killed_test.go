//go:build simulated || nightly

package native_test

import (
	"context"
	"math/rand/v2"

	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kruisekit/kruisekit/controllers/native"
)

// run runs the reconciler, and kills it after some writes, until the context ends.
func (c *chaos) run(ctx context.Context, r *rand.Rand) (kills int) {
	for ctx.Err() == nil {
		c.mu.Lock()
		c.left, c.died = 1+r.IntN(25), make(chan struct{})
		died := c.died
		c.mu.Unlock()
		stop := c.start()
		select {
		case <-died:
			kills++
		case <-ctx.Done():
		}
		stop()
	}
	c.mu.Lock()
	c.left = 1 << 30
	c.mu.Unlock()
	c.start()
	return kills
}

// start starts a manager, and returns what stops it.
func (c *chaos) start() (stop func()) {
	c.Helper()
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: c.Scheme, Cache: c.Cache, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		c.Fatal(err)
	}
	direct, err := client.NewWithWatch(config, client.Options{
		Scheme: c.Scheme, Cache: &client.CacheOptions{Reader: mgr.GetCache()},
	})
	if err != nil {
		c.Fatal(err)
	}
	reconciler, err := native.New(interceptor.NewClient(direct, c.through()), native.Options{Deployments: true})
	if err == nil {
		// The queue with priorities may not stop: its Done and its ShutDown wait for each other.
		err = reconciler.SetupWithManager(c.Context(), mgr, controller.Options{
			MaxConcurrentReconciles: 2, SkipNameValidation: ptr.To(true), UsePriorityQueue: ptr.To(false),
		})
	}
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			c.Error(err)
		}
	}
}

// through has the writes of the reconciler pass by the rules.
func (c *chaos) through() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, in client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.write(o, false, nil, func() error { return in.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, in client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return c.write(o, false, nil, func() error { return in.Delete(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, in client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			data, _ := p.Data(o)
			return c.write(o, false, data, func() error { return in.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, in client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption,
		) error {
			data, _ := p.Data(o)
			return c.write(o, false, data, func() error { return in.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(
			ctx context.Context, in client.Client, sub string, o, body client.Object,
			opts ...client.SubResourceCreateOption,
		) error {
			return c.write(o, sub == "eviction", nil, func() error { return in.SubResource(sub).Create(ctx, o, body, opts...) })
		},
	}
}
