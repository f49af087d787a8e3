package containermeta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/background"
	"github.com/kruisekit/kruisekit/daemon/internal/recording"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/daemon/internal/waiting"
)

// Runtime is a container runtime of the node: a *cri.Runtime. With one that has the method Connection too, as that,
// what has failed is tried again as soon as it is back.
type Runtime interface {
	// Exec runs a command in a container and waits for its end.
	Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error)
	// Stop ends a container and waits for that.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Name is what the IDs of its containers begin with in the status of pods.
	Name() string
	// Containers returns those that a query selects.
	Containers(ctx context.Context, q cri.Query) ([]cri.Container, error)
}

// Reconciler describes the pods of a node.
type Reconciler struct {
	client   client.Client
	node     string
	runtimes map[string]Runtime
	options  Options

	workers *stopping.Workers[attempt]
	waiting *waiting.List

	mu     sync.Mutex
	memory map[types.NamespacedName]*memory
}

// attempt is the key of a kill.
type attempt struct {
	pod         types.NamespacedName
	containerID string
}

// New makes a Reconciler for a node and its runtimes, such as Runtimes.Found of the package cri; of those with the same
// name the first counts. The client may read from a cache.
func New[R Runtime](c client.Client, node string, runtimes []R, o Options) (*Reconciler, error) {
	if c == nil || node == "" || len(runtimes) == 0 {
		return nil, errors.New("containermeta: a client, the name of the node and a runtime are needed")
	}
	r := &Reconciler{
		client: c, node: node, runtimes: map[string]Runtime{}, options: o.withDefaults(),
		waiting: waiting.New(), memory: map[types.NamespacedName]*memory{},
	}
	for _, is := range runtimes {
		if _, there := r.runtimes[is.Name()]; !there {
			r.runtimes[is.Name()] = is
		}
	}
	var err error
	r.workers, err = stopping.New(stopping.Options{
		By:         "containermeta",
		Most:       r.options.Stops,
		Recorder:   r.options.Recorder,
		Registerer: r.options.Registerer,
		Now:        r.options.Now,
	}, func(a attempt) { r.waiting.Wake(a.pod) })
	if err != nil {
		return nil, fmt.Errorf("containermeta: %w", err)
	}
	return r, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

const (
	controllerName = "runtime_container_meta"
	component      = "kruise-daemon-containermeta"

	// workers look at so many pods at the same time by default, as with the reference.
	workers = 5
	// The pauses between attempts that fail.
	leastPause = 500 * time.Millisecond
	mostPause  = 50 * time.Second
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts. The manager's cache may be
// restricted to the pods of this node.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
	}
	if r.options.Recorder == nil {
		recorder, err := recording.For(mgr, component, r.node)
		if err != nil {
			return err
		}
		r.workers.Record(recorder)
	}
	if err := mgr.Add(r.background()); err != nil {
		return fmt.Errorf("add what stops containers: %w", err)
	}
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
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&corev1.Pod{}, builder.WithPredicates(r.podEvents())).
		WatchesRawSource(source.Func(r.waiting.Start)).
		WithOptions(o).
		Complete(r)
}

// background is what works beside the workers of the controller.
func (r *Reconciler) background() background.Tasks {
	tasks := background.Tasks{r.workers.Work}
	for _, runtime := range r.runtimes {
		if is, ok := runtime.(waiting.Connected); ok {
			tasks = append(tasks, func(ctx context.Context) { r.waiting.Reconnections(ctx, is) })
		}
	}
	return tasks
}

// podEvents are those after which a pod of this node may be described otherwise, or goes.
func (r *Reconciler) podEvents() predicate.Predicate {
	env := !r.options.NoEnv
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			pod := r.own(e.Object)
			return pod != nil && containerrestart.Stale(nil, pod, env)
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := r.own(e.ObjectOld), r.own(e.ObjectNew)
			if is == nil {
				return false
			}
			leaves := is.DeletionTimestamp != nil && (was == nil || was.DeletionTimestamp == nil)
			return leaves || was != nil && was.UID != is.UID || containerrestart.Stale(was, is, env)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return r.own(e.Object) != nil },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// own is the pod of an event, if it is of this node.
func (r *Reconciler) own(o client.Object) *corev1.Pod {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != r.node {
		return nil
	}
	return pod
}

// Reconcile does what there is to do about one pod now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	pod, err := r.podNamed(ctx, r.client, name.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if pod == nil || pod.DeletionTimestamp != nil {
		r.forget(name.NamespacedName)
		return ctrl.Result{}, nil
	}
	p := &pass{
		Reconciler: r, name: name.NamespacedName, now: r.options.Now(), memory: r.remember(name.NamespacedName, pod.UID),
	}
	// Until it is known to have gone well, the return of a runtime is worth a look.
	r.waiting.Put(p.name, pod.UID)
	if err := p.describe(ctx, pod); err != nil {
		return ctrl.Result{}, err
	}
	r.waiting.Drop(p.name)
	return ctrl.Result{RequeueAfter: p.after}, nil
}
