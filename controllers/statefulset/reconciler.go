package statefulset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// Reconciler brings Advanced StatefulSets to what they ask for.
type Reconciler struct {
	kit     *workloads.Kit
	options Options
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	kit, err := workloads.New("statefulset", c, workloads.Options{
		Kind: gvk(), Binding: binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now}, Stem: setOf,
		Dependents: workloads.DependentOptions{PullJobs: o.PreDownload},
		Scaling:    creation().Type, Updating: update().Type, Events: events(), Ask: o.Ask, Explain: o.Explain,
	})
	if err != nil {
		return nil, err
	}
	return &Reconciler{kit: kit, options: o}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound, err := r.kit.Controller(ctx, mgr, workloads.Controller{
		Name:    "statefulset-controller",
		Options: o,
		Pods:    workloads.WatchOptions{SkipQuiet: r.options.SkipQuiet, Policy: workloads.Policy(r.options.Installed)},
	})
	if err != nil {
		return err
	}
	return bound.Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.setsOfClaim)).Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const kind = "StatefulSet"

// Reconcile brings one StatefulSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	return workloads.Reconcile(ctx, r.kit, &s.Observation, workloads.Steps[*plan]{
		Plan:   func() (*plan, error) { return r.options.plan(s) },
		Failed: s.failed,
		Parts:  func(p *plan) workloads.Parts { return r.options.parts(s, p) },
	})
}
