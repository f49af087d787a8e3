package containerrestart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/background"
	"github.com/kruisekit/kruisekit/daemon/internal/recording"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/daemon/internal/waiting"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Runtime is a container runtime of the node: a *cri.Runtime. One that has the methods Connection and Events too, as
// that, is listened to.
type Runtime interface {
	// Exec runs a command in a container and waits for its end.
	Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error)
	// Stop ends a container and waits for that.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Name is what the IDs of its containers begin with in the status of pods.
	Name() string
	// Containers returns those that a query selects.
	Containers(ctx context.Context, q cri.Query) ([]cri.Container, error)
	// Sandbox returns the one of an ID.
	Sandbox(ctx context.Context, id string) (cri.Sandbox, error)
}

// Reconciler works on the ContainerRecreateRequests of a node. It is asked about pods, by name.
type Reconciler struct {
	client client.Client
	// cached is where requests are read from, as untyped objects, and found by their pod.
	cached   client.Reader
	node     string
	runtimes map[string]Runtime
	options  Options

	writes  *ledger.Ledger[*unstructured.Unstructured]
	decoded decoded
	workers *stopping.Workers[attempt]
	waiting *waiting.List
}

// attempt is the key of a kill.
type attempt struct {
	pod       types.NamespacedName
	podUID    types.UID
	request   string
	uid       types.UID
	container string
}

// New makes a Reconciler for a node and its runtimes, such as Runtimes.Found of the package cri; of those with the same
// name the first counts. The client may read from a cache.
func New[R Runtime](c client.Client, node string, runtimes []R, o Options) (*Reconciler, error) {
	if c == nil || node == "" || len(runtimes) == 0 {
		return nil, errors.New("containerrestart: a client, the name of the node and a runtime are needed")
	}
	r := &Reconciler{
		client: c, cached: c, node: node, runtimes: map[string]Runtime{}, options: o.withDefaults(), waiting: waiting.New(),
	}
	for _, is := range runtimes {
		if _, there := r.runtimes[is.Name()]; !there {
			r.runtimes[is.Name()] = is
		}
	}
	var err error
	r.workers, err = stopping.New(stopping.Options{
		By: "crr", Most: r.options.Stops, Recorder: r.options.Recorder, Registerer: r.options.Registerer, Now: r.options.Now,
	}, func(a attempt) { r.waiting.Wake(a.pod) })
	if err != nil {
		return nil, fmt.Errorf("containerrestart: %w", err)
	}
	r.keepLedger()
	return r, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

func (r *Reconciler) keepLedger() {
	r.writes = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
}

// known are the names of the runtimes.
func (r *Reconciler) known() []string { return slices.Sorted(maps.Keys(r.runtimes)) }

const (
	controllerName = "crr"
	component      = "kruise-daemon-crr"

	// workers look at so many pods at the same time by default. None of them waits for a container to stop.
	workers = 8
	// The pauses between attempts that fail.
	leastPause = 500 * time.Millisecond
	mostPause  = 50 * time.Second
	// soon is when to reconcile again after a write that failed because the object has changed. Usually an event comes
	// first.
	soon = time.Second
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts. The manager's cache may be
// restricted to requests with the labels of this node and of active ones, and to pods of this node.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.cached = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedger()
	}
	if r.options.Recorder == nil {
		recorder, err := recording.For(mgr, component, r.node)
		if err != nil {
			return err
		}
		r.workers.Record(recorder)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), byPod, podNameOf); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	if err := mgr.Add(r.background()); err != nil {
		return fmt.Errorf("add what stops containers: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		Watches(stored.Untyped(gvk()), handler.EnqueueRequestsFromMapFunc(podOf), builder.WithPredicates(r.ours())).
		WatchesRawSource(source.Func(r.waiting.Start)).
		WithOptions(withDefaults(o))
	if !r.options.NoPods {
		b = b.Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.podEvents()))
	}
	return b.Complete(r)
}

func withDefaults(o controller.Options) controller.Options {
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = workers
	}
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true) // two nodes in one process, as in tests
	}
	if o.NeedLeaderElection == nil {
		o.NeedLeaderElection = ptr.To(false) // each node has its own
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	}
	return o
}

// background is what works beside the workers of the controller.
func (r *Reconciler) background() background.Tasks {
	tasks := background.Tasks{r.workers.Work}
	for _, runtime := range r.runtimes {
		if is, ok := runtime.(waiting.Connected); ok {
			tasks = append(tasks, func(ctx context.Context) { r.waiting.Reconnections(ctx, is) })
		}
		if is, ok := runtime.(waiting.Eventful); ok && !r.options.NoEvents {
			tasks = append(tasks, func(ctx context.Context) { r.waiting.Events(ctx, is) })
		}
	}
	return tasks
}

// Reconcile does what there is to do about the requests of one pod now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, name.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.keep(s)
	a := &act{Reconciler: r, snapshot: s, first: s.queued()}
	var failures []error
	for i := range s.requests {
		failures = append(failures, a.serve(ctx, i))
	}
	r.keep(s)
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: a.after}, nil
}
