package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// resync is how often the Secret is read where nothing happens: certificates end.
	resync = time.Hour
	// firstRetry and lastRetry bound the pause after a failure.
	firstRetry, lastRetry = 200 * time.Millisecond, 30 * time.Second
	// rewatch is the minimum pause between two watches of an object, and lastRetry the maximum.
	rewatch = time.Second
	// settle is how long API servers get to learn of a new CA before a certificate of it is served.
	settle = 5 * time.Second
	// externalCAName is where cert-manager puts the CA.
	externalCAName = "ca.crt"
)

// material is what a Secret holds, ready for use. It is never changed.
type material struct {
	// bundle is what API servers trust.
	bundle      []byte
	authorities []*x509.Certificate
	serving     *tls.Certificate
	chain       []*x509.Certificate
}

// parse reads the Secret's data: ours, or that of another program.
func parse(data map[string][]byte, external bool) (*material, error) {
	bundle := data[caCertName]
	if external && len(data[externalCAName]) > 0 {
		bundle = data[externalCAName]
	}
	serving, err := tls.X509KeyPair(data[tlsCertName], data[tlsKeyName])
	if err != nil {
		return nil, fmt.Errorf("read %s and %s: %w", tlsCertName, tlsKeyName, err)
	}
	chain := decode(data[tlsCertName])
	if len(chain) == 0 {
		return nil, fmt.Errorf("read %s: a certificate is malformed", tlsCertName)
	}
	return &material{bundle, decode(bundle), &serving, chain}, nil
}

// Keeper keeps one certificate. Its methods may be called at the same time, Start once.
type Keeper struct {
	client  client.WithWatch
	service types.NamespacedName
	options Options
	names   []string
	clock   clock.Clock

	// serving is what the server hands out; nil before the first.
	serving atomic.Pointer[material]
	// settled is when all targets first carried the CA of what is served; nil before.
	settled atomic.Pointer[time.Time]
	// older has the names of the CRDs of which etcd may hold objects in an older version.
	older sync.Map
	// started reports whether the server of With listens; nil without a server.
	started healthz.Checker
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
	return &Keeper{
		client: live, service: service, options: o.withDefaults(service), names: names, clock: clock.RealClock{},
	}, nil
}

// NeedLeaderElection is false: every replica serves.
func (*Keeper) NeedLeaderElection() bool { return false }

var errTimeout = errors.New("certificates: no certificate in use in time")

// Start keeps the certificate until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if within := k.options.StartTimeout; within > 0 && !k.options.External {
		defer time.AfterFunc(within, func() {
			if k.settled.Load() == nil {
				cancel(fmt.Errorf("%w: %s", errTimeout, within))
			}
		}).Stop()
	}
	c, err := controller.NewTypedUnmanaged("certificates", controller.TypedOptions[Target]{
		Reconciler:         reconcile.TypedFunc[Target](k.reconcile),
		RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[Target](firstRetry, lastRetry),
		SkipNameValidation: ptr.To(true), Logger: log.FromContext(ctx),
	})
	if err == nil {
		err = c.Watch(source.TypedFunc[Target](k.watch))
	}
	if err == nil {
		err = c.Start(ctx)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return cause
	}
	return err
}

// watch enqueues the Secret and the targets whenever they may have changed.
func (k *Keeper) watch(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Target]) error {
	own := Target{secrets(), k.options.Secret}
	queue.Add(own)
	for _, t := range append([]Target{own}, k.options.Targets...) {
		backoff := wait.Backoff{Duration: rewatch, Factor: 2, Jitter: 1, Steps: 5, Cap: lastRetry}
		pause := backoff.DelayWithReset(k.clock, lastRetry)
		go func() {
			_ = pause.Until(ctx, true, true, func(ctx context.Context) (done bool, err error) {
				k.watchOne(ctx, t, func() { queue.Add(t) })
				return false, nil
			})
		}()
	}
	return nil
}

// watchOne calls changed whenever the object may have changed, until the watch ends. A watch without a version begins
// with the object as it is, so what one misses the next does not.
func (k *Keeper) watchOne(ctx context.Context, t Target, changed func()) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
	options := []client.ListOption{client.MatchingFields{"metadata.name": t.name}}
	if t.kind == secrets() {
		options = append(options, client.InNamespace(k.service.Namespace))
	}
	events, err := k.client.Watch(ctx, list, options...)
	if err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Failed to watch", "object", t.String())
		}
		return
	}
	defer events.Stop()
	changed() // what is gone by now gives no event
	for range events.ResultChan() {
		changed()
	}
}

func (k *Keeper) reconcile(ctx context.Context, t Target) (reconcile.Result, error) {
	if t.kind == secrets() {
		err := k.refresh(ctx)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: firstRetry}, nil // another replica has written the Secret
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: resync}, nil
	}
	now := k.serving.Load()
	if now == nil || k.settled.Load() == nil {
		return reconcile.Result{}, nil // refresh sees to all targets
	}
	object, err := k.read(ctx, t)
	if err != nil || object == nil || !k.trust(object, now.bundle) {
		return reconcile.Result{}, err
	}
	// Another replica may have read a newer Secret, and been here.
	if err := k.refresh(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, k.inject(ctx, t, k.serving.Load().bundle)
}

// refresh brings what is in the Secret into use: first where API servers look, then in the server.
func (k *Keeper) refresh(ctx context.Context) error {
	now := k.serving.Load()
	next, err := k.load(ctx)
	if err != nil {
		return err
	}
	changed := now != nil && !bytes.Equal(now.bundle, next.bundle)
	if now != nil && !changed && now.chain[0].Equal(next.chain[0]) && k.settled.Load() != nil {
		return nil
	}
	if now == nil {
		k.serving.Store(next) // no client trusts another yet
	}
	var failures []error
	for _, t := range k.options.Targets {
		failures = append(failures, k.inject(ctx, t, next.bundle))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	if changed && verify(now.chain, next.authorities, k.names[0], k.clock.Now()) == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.clock.After(settle):
		}
	}
	k.serving.Store(next)
	settled := k.clock.Now()
	k.settled.CompareAndSwap(nil, &settled)
	log.FromContext(ctx).Info("Serving certificate in use",
		"notAfter", next.chain[0].NotAfter, "authorities", len(next.authorities))
	return nil
}

// load reads the Secret, and writes it first where it must change. Of replicas that try at once one succeeds, and the
// others fail and take later what it wrote.
func (k *Keeper) load(ctx context.Context) (*material, error) {
	object := &corev1.Secret{}
	object.Namespace, object.Name = k.service.Namespace, k.options.Secret
	err := k.client.Get(ctx, client.ObjectKeyFromObject(object), object)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read Secret: %w", err)
	}
	if k.options.External {
		if missing {
			return nil, fmt.Errorf("wait for the program that fills the Secret %s", client.ObjectKeyFromObject(object))
		}
		return parse(object.Data, true)
	}
	in := input{data: object.Data, names: k.names, now: k.clock.Now(), renewBefore: k.options.RenewBefore}
	if m := k.serving.Load(); m != nil {
		in.trusted = m.authorities
	}
	data, reason, err := plan(in)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		return parse(data, false)
	}
	object.Data = data
	if missing {
		err = k.client.Create(ctx, object)
	} else {
		err = k.client.Update(ctx, object)
	}
	if err != nil {
		return nil, fmt.Errorf("write Secret: %w", err)
	}
	log.FromContext(ctx).Info("Wrote certificate", "secret", client.ObjectKeyFromObject(object), "reason", reason)
	return parse(data, false)
}
