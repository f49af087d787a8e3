// Package parts has what the parts of a daemon have in common: the set-up of their controllers, recorders whose events
// name the node, and the reading of objects that a part itself writes.
package parts

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

const (
	// LeastPause and MostPause are the pauses between passes that fail.
	LeastPause = 500 * time.Millisecond
	MostPause  = 50 * time.Second //nolint:revive // the comment above
	// awayPause is the pause after a pass whose runtime is away. The next pass waits for the runtime, for seconds.
	awayPause = 3 * time.Second
)

// Options returns the options of a controller that works without election: each node has its own.
func Options(o controller.Options) controller.Options {
	o.NeedLeaderElection = ptr.To(false)
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](LeastPause, MostPause)
	}
	return o
}

// Task works next to the workers of a controller, until its context ends. The manager waits for that.
type Task func(ctx context.Context) error

// Start runs the task.
func (t Task) Start(ctx context.Context) error { return t(ctx) }

// NeedLeaderElection is false: each node has its own.
func (Task) NeedLeaderElection() bool { return false }

// Recorder returns a recorder whose events are those of a component on a node, and which works while the manager does.
// Recorders of controller-runtime do not set the node.
func Recorder(mgr manager.Manager, component, node string) (record.EventRecorder, error) {
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	b := record.NewBroadcaster()
	sending := Task(func(ctx context.Context) error {
		to := b.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.Events("")})
		<-ctx.Done()
		to.Stop()
		b.Shutdown()
		return nil
	})
	if err := mgr.Add(sending); err != nil {
		return nil, fmt.Errorf("add a recorder of events: %w", err)
	}
	return b.NewRecorder(mgr.GetScheme(), corev1.EventSource{Component: component, Host: node}), nil
}

// Retry returns what a reconciler returns after a failure. A runtime that is away is asked again soon, however often it
// was away before.
func Retry(ctx context.Context, err error) (reconcile.Result, error) {
	if !errors.Is(err, cri.ErrUnavailable) {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("Waiting for the container runtime", "reason", err.Error())
	return reconcile.Result{RequeueAfter: awayPause}, nil
}

// Latest returns the newer one of the cached object and the answer to the last own write; nil where there is
// none. While the cache shows the state before a write, it also returns when to look again: where etcd is restored to
// an older version, no event follows.
func Latest[T any, P interface {
	*T
	client.Object
}](
	ctx context.Context, from client.Reader, writes *ledger.Ledger[P], name types.NamespacedName,
) (object P, again time.Duration, err error) {
	cached, err := stored.Find[T, P](ctx, from, name)
	if err != nil {
		return nil, 0, err
	}
	if cached == nil {
		writes.Forget(name)
		return nil, 0, nil
	}
	all, _, err := writes.Overlay(ctx, name, []P{cached})
	switch {
	case err != nil:
		return nil, 0, err
	case len(all) == 0:
		return nil, 0, nil
	case all[0].GetUID() != cached.GetUID():
		writes.Forget(name)
	case all[0].GetResourceVersion() != cached.GetResourceVersion():
		return all[0], ledger.Patience, nil
	}
	return cached, 0, nil
}
