package sidecarterminator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler finishes pods.
type Reconciler struct {
	api *binding.Binding
	// requests are recorded under the names of their pods.
	requests *ledger.Ledger[*v1beta1.ContainerRecreateRequest]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("sidecarterminator", c, binding.Options{Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{api: api, requests: ledger.New[*v1beta1.ContainerRecreateRequest](api.Live, api.Now)}, nil
}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	return r.api.Bind(mgr, "sidecarterminator-controller", o).
		For(&corev1.Pod{}, builder.WithPredicates(podEvents())).
		Watches(stored.Untyped(gvk()), owned.By("", "Pod")).
		Complete(r)
}

func gvk() schema.GroupVersionKind {
	return v1beta1.GroupVersion.WithKind("ContainerRecreateRequest")
}

const (
	// soon is when to look again at what has changed in the moment of a write.
	soon = time.Second
	// kept is how long a recorded request is kept at least.
	kept = time.Minute
)

// Reconcile makes the next step of one pod.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	in, recheckAfter, err := r.observe(ctx, name.NamespacedName)
	if err != nil || in == nil {
		return ctrl.Result{}, err
	}
	action := finish.Next(*in)
	after := passes.Sooner(action.RequeueAfter, recheckAfter)
	binding.LogNotes(ctx, action.Notes)
	switch err := r.run(ctx, in, action); {
	case write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		return ctrl.Result{}, err
	case len(action.Writes) > 0: // so that the requests of a pod that has ended are forgotten
		after = passes.Sooner(after, kept)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// run sends the writes of an action one after the other, until one fails.
func (r *Reconciler) run(ctx context.Context, in *finish.Input, action finish.Action) error {
	for _, w := range action.Writes {
		_, err := r.api.Send(ctx, client.ObjectKeyFromObject(in.Pod), w, r.requests)
		if w.Verb == write.Create && apierrors.IsAlreadyExists(err) {
			return nil // the cache did not show the request yet
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		if w.Verb == write.Create || w.Verb == write.Patch && w.Subresource == write.Main { // containers stop
			r.api.Event(in.Pod, corev1.EventTypeNormal, finish.EventReason, action.Event)
		}
	}
	return nil
}
