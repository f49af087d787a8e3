package certificates

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// look is how often the Secret is read where nothing happens: certificates end, and a watch may have missed something.
	look = time.Hour
	// firstRetry and lastRetry bound the pause after a failure.
	firstRetry, lastRetry = 200 * time.Millisecond, 30 * time.Second
)

// Keeper keeps one certificate. Its methods may be called at the same time, Start once.
type Keeper struct {
	client  client.WithWatch
	service types.NamespacedName
	options Options
	names   []string

	// serving is what the server hands out; nil before the first.
	serving atomic.Pointer[material]
	// settled says that all targets have carried the CA of what is served.
	settled atomic.Bool
	// conversions are the CRDs whose objects need this service to be read.
	conversions conversions
	// readiness is what Ready has found.
	readiness readiness
	// cold is what ColdStart has found.
	cold coldStart
}

// New makes a Keeper for the webhooks that API servers reach through a Service.
func New(config *rest.Config, service types.NamespacedName, o Options) (*Keeper, error) {
	if err := o.validate(service); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	live, err := newClient(config)
	if err != nil {
		return nil, err
	}
	names := []string{service.Name + "." + service.Namespace + ".svc", "localhost"}
	k := &Keeper{client: live, service: service, options: o.withDefaults(service), names: names}
	k.cold.endpoints, k.cold.addresses = k.endpoints, net.InterfaceAddrs
	return k, nil
}

// NeedLeaderElection is false: every replica serves.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start keeps the certificate until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[Target](firstRetry, lastRetry))
	var background sync.WaitGroup
	background.Add(1)
	go func() {
		defer background.Done()

		<-ctx.Done()
		queue.ShutDown()
	}()
	if k.options.StartTimeout > 0 && !k.options.External {
		background.Add(1)
		go func() {
			defer background.Done()
			k.giveUp(ctx, cancel)
		}()
	}
	queue.Add(k.secret())
	for _, t := range append([]Target{k.secret()}, k.options.Targets...) {
		background.Add(1)
		go func() {
			defer background.Done()
			k.follow(ctx, t, func() { queue.Add(t) })
		}()
	}
	for k.work(ctx, queue) {
	}
	background.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return cause
	}
	return nil
}

var errTimeout = errors.New("certificates: no certificate in use in time")

// giveUp ends Start when nothing is in use by its timeout.
func (k *Keeper) giveUp(ctx context.Context, cancel context.CancelCauseFunc) {
	if err := k.pause(ctx, k.options.StartTimeout); err == nil && !k.settled.Load() {
		cancel(fmt.Errorf("%w: %s", errTimeout, k.options.StartTimeout))
	}
}

// work handles one item, and reports whether there may be more.
func (k *Keeper) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Target]) bool {
	item, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(item)
	err := k.handle(ctx, item)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.FromContext(ctx).Error(err, "Keep certificate", "object", item.String())
		queue.AddRateLimited(item)
	default:
		queue.Forget(item)
		if item.kind == secret {
			queue.AddAfter(item, look)
		}
	}
	return true
}

func (k *Keeper) handle(ctx context.Context, item Target) error {
	if item.kind == secret {
		return k.refresh(ctx)
	}
	now := k.serving.Load()
	if now == nil || !k.settled.Load() {
		return nil // refresh sees to all targets
	}
	if ok, err := k.carries(ctx, item, now.bundle); ok || err != nil {
		return err
	}
	// Another replica may have read a newer Secret, and been here.
	if err := k.refresh(ctx); err != nil {
		return err
	}
	return k.inject(ctx, item, k.serving.Load().bundle)
}

// refresh brings what is in the Secret into use: first where API servers look, then in the server.
func (k *Keeper) refresh(ctx context.Context) error {
	now := k.serving.Load()
	next, err := k.load(ctx)
	if err != nil {
		return err
	}
	if now != nil && now.same(next) && k.settled.Load() {
		return nil
	}
	if now == nil {
		k.serving.Store(next) // no client trusts another yet
	}
	if err := k.injectAll(ctx, next.bundle); err != nil {
		return err
	}
	if now != nil && !slices.Equal(now.bundle, next.bundle) && next.trusts(now, k.input()) {
		if err := k.pause(ctx, k.options.Settle); err != nil {
			return err
		}
	}
	k.serving.Store(next)
	k.settled.Store(true)
	log.FromContext(ctx).Info("Serving certificate in use",
		"notAfter", next.chain[0].NotAfter, "authorities", len(next.authorities))
	return nil
}

func (k *Keeper) injectAll(ctx context.Context, bundle []byte) error {
	var failures []error
	for _, t := range k.options.Targets {
		failures = append(failures, k.inject(ctx, t, bundle))
	}
	return errors.Join(failures...)
}

// input of a plan, without the data.
func (k *Keeper) input() input {
	in := input{names: k.names, now: k.options.Clock.Now(), renewBefore: k.options.RenewBefore, overlap: k.options.Overlap}
	if m := k.serving.Load(); m != nil {
		in.trusted = m.authorities
	}
	return in
}

func (k *Keeper) secret() Target { return Target{kind: secret, name: k.options.Secret} }

// pause waits, unless the context ends before.
func (k *Keeper) pause(ctx context.Context, d time.Duration) error {
	timer := k.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
