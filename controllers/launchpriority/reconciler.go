package launchpriority

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler writes the barriers of pods.
type Reconciler struct {
	api     *binding.Binding
	options Options
	memory  memory
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("launchpriority", c, binding.Options{Live: o.Live, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{api: api, options: o}, nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	return r.api.Bind(mgr, controllerName, o).
		For(&corev1.Pod{}, builder.WithPredicates(r.events())).
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
	pod, err := stored.Find[corev1.Pod](ctx, r.api.Client, name.NamespacedName)
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
	binding.LogNotes(ctx, a.plan.Notes)
	switch err := a.carryOut(ctx); {
	case write.IsOutdated(err) || apierrors.IsAlreadyExists(err):
		r.memory.forget(name.NamespacedName)
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		r.memory.forget(name.NamespacedName)
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: cmp.Or(fresh, a.plan.RequeueAfter)}, nil
}
