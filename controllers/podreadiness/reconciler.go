package podreadiness

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
)

// Reconciler sets KruisePodReady of new pods.
type Reconciler struct {
	api *binding.Binding
	// set are the conditions that were set, until the cache shows them.
	set passes.Memory[types.NamespacedName, condition]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("podreadiness", c, binding.Options{Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{api: api}, nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	return r.api.Bind(mgr, "pod-readiness-controller", o).
		For(&corev1.Pod{}, builder.WithPredicates(r.events())).
		Complete(r)
}

// patience is how long the cache may take to show a write.
const patience = time.Minute

// Reconcile sets the condition of one pod, if it has none.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, name.NamespacedName)
	switch {
	case err != nil || s == nil:
		return ctrl.Result{}, err
	case s.left > 0:
		return ctrl.Result{RequeueAfter: s.left}, nil
	}
	_, err = r.api.Send(ctx, name.NamespacedName, s.condition())
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		// Another writer has set it, or another pod has the name. The cache will show which.
		return ctrl.Result{RequeueAfter: patience}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write condition of pod: %w", err)
	}
	r.set.Note(name.NamespacedName, func(c *condition) { *c = condition{s.pod.UID, s.now} })
	return ctrl.Result{RequeueAfter: patience}, nil
}
