package launchpriority

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/launch"
)

// Reconciler writes the barriers of pods.
type Reconciler struct {
	client  client.Client
	options Options
	memory  memory
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("launchpriority: a client is needed")
	}
	return &Reconciler{client: c, options: o.withDefaults()}, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&corev1.Pod{}, builder.WithPredicates(r.events())).
		WithOptions(retries.WithDefaults(o)).
		Complete(r)
}

const (
	controllerName = "container-launch-priority-controller"

	// soon is when to look again at what has changed in the moment of a write.
	soon = time.Second
	// trust is how long what was written is believed although the kubelet has not found it. It tries again every ten seconds.
	trust = 20 * time.Second
)

// Reconcile does what there is to do for one pod now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	pod, err := r.pod(ctx, name.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if pod == nil || !launch.Concerns(pod, r.options.Policy) && !launch.Incomplete(pod) {
		r.memory.forget(name.NamespacedName)
		return ctrl.Result{}, nil
	}
	barrier, fresh, err := r.barrier(ctx, pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, pod: pod, barrier: barrier}
	a.plan = launch.Next(launch.Input{Pod: pod, Barrier: barrier, Policy: r.options.Policy})
	a.explain(ctx)
	switch err := a.carryOut(ctx); {
	case outdated(err):
		r.memory.forget(name.NamespacedName)
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		r.memory.forget(name.NamespacedName)
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: cmp.Or(fresh, a.plan.RequeueAfter)}, nil
}
