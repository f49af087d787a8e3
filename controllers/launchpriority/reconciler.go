package launchpriority

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

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/launch"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler writes the barriers of pods.
type Reconciler struct {
	api     *binding.Binding
	options Options
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
	return r.api.Bind(mgr, "container-launch-priority-controller", o).
		For(&corev1.Pod{}, builder.WithPredicates(r.events())).
		Complete(r)
}

// soon is when to look again at what has changed in the moment of a write.
const soon = time.Second

// Reconcile does what there is to do for one pod now.
func (r *Reconciler) Reconcile(ctx context.Context, name ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, name.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := launch.Next(launch.Input{Pod: s.pod, Barrier: s.barrier, Policy: s.policy})
	binding.LogNotes(ctx, p.Notes)
	err = r.run(ctx, s, p)
	switch {
	case write.IsOutdated(err) || apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: soon}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: p.RequeueAfter}, nil
}

// run sends the writes of a plan one after the other, until one fails.
func (r *Reconciler) run(ctx context.Context, s *snapshot, p launch.Plan) error {
	writes, err := s.writes(p)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(s.pod)
	if p.Remove != "" {
		// The barrier may be that of a later pod of this name, whose event comes.
		live, err := stored.Metadata(ctx, r.api.Live, podKind(), name)
		if err != nil || live == nil || live.UID != s.pod.UID || live.DeletionTimestamp != nil {
			return err
		}
	}
	for _, w := range writes {
		_, err := r.api.Send(ctx, name, w)
		if err != nil && (w.Verb != write.Delete || !apierrors.IsNotFound(err)) {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	return nil
}

func podKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Pod") }
