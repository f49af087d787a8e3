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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/daemon/internal/stopping"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
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
	// Sandbox returns the one of an ID.
	Sandbox(ctx context.Context, id string) (cri.Sandbox, error)
}

// Reconciler works on the ContainerRecreateRequests of a node. It is asked about pods, by name.
type Reconciler struct {
	api      *binding.Binding
	node     string
	runtimes map[string]Runtime
	options  Options

	// writes are the own writes of requests, which are read as untyped objects, and found by their pod.
	writes  *ledger.Ledger[*unstructured.Unstructured]
	workers *stopping.Workers[attempt]
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
	api, err := binding.New("containerrestart", c, binding.Options{Live: o.Live, Now: o.Now})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		api: api, node: node, runtimes: map[string]Runtime{}, options: o,
		writes: ledger.New[*unstructured.Unstructured](api.Live, api.Now),
	}
	for _, is := range runtimes {
		if _, there := r.runtimes[is.Name()]; !there {
			r.runtimes[is.Name()] = is
		}
	}
	r.workers, err = stopping.New(stopping.Options{
		By: "crr", Most: mostStops, Event: r.event, Registerer: o.Registerer, Now: api.Now,
	}, func(a attempt) { r.api.Requeue(ctrl.Request{NamespacedName: a.pod}) })
	if err != nil {
		return nil, fmt.Errorf("containerrestart: %w", err)
	}
	return r, nil
}

func (r *Reconciler) event(about *corev1.ObjectReference, eventType, reason, text string) {
	if r.options.Recorder != nil {
		r.options.Recorder.Event(about, eventType, reason, text)
	}
}

// known are the names of the runtimes.
func (r *Reconciler) known() []string { return slices.Sorted(maps.Keys(r.runtimes)) }

const (
	controllerName = "crr"
	component      = "kruise-daemon-crr"

	// workers look at so many pods at the same time by default. None of them waits for a container to stop.
	workers = 8
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
	if r.options.Recorder == nil {
		var err error
		if r.options.Recorder, err = parts.Recorder(mgr, component, r.node); err != nil {
			return err
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), byPod, podNameOf); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	if err := mgr.Add(parts.Task(r.workers.Work)); err != nil {
		return fmt.Errorf("add what stops containers: %w", err)
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = workers
	}
	b := r.api.Bind(mgr, controllerName, parts.Options(o)).
		Watches(stored.Untyped(gvk()), handler.EnqueueRequestsFromMapFunc(podOf), builder.WithPredicates(r.ours()))
	if !r.options.NoPods {
		b = b.Watches(&corev1.Pod{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.podEvents()))
	}
	return b.Complete(r)
}

// Reconcile does what there is to do about the requests of one pod now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, name.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, snapshot: s, first: s.queued()}
	var failures []error
	for i := range s.requests {
		failures = append(failures, a.serve(ctx, i))
	}
	if err := errors.Join(failures...); err != nil {
		return parts.Retry(ctx, err)
	}
	return ctrl.Result{RequeueAfter: a.after}, nil
}
