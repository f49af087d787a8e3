package containermeta

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/containerrestart"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/ledger"
)

// Runtime is a container runtime of the node: a *cri.Runtime.
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
	api      *binding.Binding
	node     string
	runtimes map[string]Runtime
	options  Options

	// writes has pods with the annotations that were written, until the cache shows them.
	writes  *ledger.Ledger[*corev1.Pod]
	workers *stopping.Workers[attempt]

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
	api, err := binding.New("containermeta", c, binding.Options{Live: o.Live, Now: o.Now})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		api: api, node: node, runtimes: map[string]Runtime{}, options: o,
		writes: ledger.New[*corev1.Pod](api.Live, api.Now), memory: map[types.NamespacedName]*memory{},
	}
	for _, is := range runtimes {
		if _, there := r.runtimes[is.Name()]; !there {
			r.runtimes[is.Name()] = is
		}
	}
	r.workers, err = stopping.New(stopping.Options{
		By: "containermeta", Most: mostStops, Event: r.event, Registerer: o.Registerer, Now: api.Now,
	}, func(a attempt) { r.api.Requeue(ctrl.Request{NamespacedName: a.pod}) })
	if err != nil {
		return nil, fmt.Errorf("containermeta: %w", err)
	}
	return r, nil
}

func (r *Reconciler) event(about *corev1.ObjectReference, eventType, reason, text string) {
	if r.options.Recorder != nil {
		r.options.Recorder.Event(about, eventType, reason, text)
	}
}

const (
	controllerName = "runtime_container_meta"
	component      = "kruise-daemon-containermeta"

	// workers look at so many pods at the same time by default, as with the reference.
	workers = 5
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts. The manager's cache may be
// restricted to the pods of this node.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Recorder == nil {
		var err error
		if r.options.Recorder, err = parts.Recorder(mgr, component, r.node); err != nil {
			return err
		}
	}
	if err := mgr.Add(parts.Task(r.workers.Work)); err != nil {
		return fmt.Errorf("add what stops containers: %w", err)
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = workers
	}
	return r.api.Bind(mgr, controllerName, parts.Options(o)).
		For(&corev1.Pod{}, builder.WithPredicates(r.podEvents())).
		Complete(r)
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
	pod, again, err := parts.Latest(ctx, r.api.Client, r.writes, name.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if pod == nil || r.own(pod) == nil || pod.DeletionTimestamp != nil {
		r.forget(name.NamespacedName)
		return ctrl.Result{}, nil
	}
	p := &pass{
		Reconciler: r, name: name.NamespacedName, now: r.api.Now(), memory: r.remember(name.NamespacedName, pod.UID),
		after: again,
	}
	if err := p.describe(ctx, pod); err != nil {
		return parts.Retry(ctx, err)
	}
	return ctrl.Result{RequeueAfter: p.after}, nil
}
