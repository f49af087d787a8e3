package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// Reconciler brings Advanced DaemonSets to what they ask for.
type Reconciler struct {
	kit     *workloads.Kit
	options Options
	memory  passes.Memory[types.NamespacedName, knowledge]
	views   *watches.Rules[v1beta1.DaemonSet, view]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	kit, err := workloads.New("daemonset", c, workloads.Options{
		Kind:       gvk(),
		Binding:    binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now},
		Stem:       workloads.OwnerOfPod,
		Cut:        workloads.StemOf,
		Dependents: workloads.DependentOptions{PullJobs: o.PreDownload, Successors: true},
		Scaling:    failedScale,
		Updating:   failedUpdate,
		Events:     events(),
		Ask:        o.Ask,
		Explain:    o.Explain,
	})
	if err != nil {
		return nil, err
	}
	return &Reconciler{kit: kit, options: o, views: watches.NewRules(newView)}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound, err := r.kit.Controller(ctx, mgr, workloads.Controller{
		Name:    "daemonset-controller",
		Options: o,
		Pods:    workloads.WatchOptions{SkipQuiet: r.options.SkipQuiet, Policy: workloads.Policy(r.options.Installed)},
	})
	if err != nil {
		return err
	}
	return bound.Watches(&corev1.Node{}, r.nodeEvents()).Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const kind = "DaemonSet"

// Reconcile brings one DaemonSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	return workloads.Reconcile(ctx, r.kit, &s.Observation, workloads.Steps[*plan]{
		Plan:   func() (*plan, error) { return r.options.plan(s) },
		Failed: s.failed,
		Parts:  func(p *plan) workloads.Parts { return r.options.parts(s, p) },
		Begin:  func(p *plan) { r.emitFailed(s, p) },
		End:    func(p *plan) { r.remember(s, p) },
	})
}

// emitFailed announces the pods that have failed, and that the pass deletes.
func (r *Reconciler) emitFailed(s *snapshot, p *plan) {
	if !p.Runs(&s.Observation) {
		return
	}
	for _, pod := range p.placed.Failed {
		r.kit.Warningf(s.set, reasonFailedPod, "Found failed daemon pod %s/%s on node %s, will try to kill it",
			pod.Namespace, pod.Name, pod.Spec.NodeName)
	}
}

// remember keeps what the next passes need.
func (r *Reconciler) remember(s *snapshot, p *plan) {
	if !p.Runs(&s.Observation) {
		return
	}
	names := p.pending(s)
	r.memory.Note(s.Key(), func(k *knowledge) {
		k.generation, k.backoff, k.names = s.set.Generation, p.placed.Backoff, names
	})
}
