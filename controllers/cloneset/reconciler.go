package cloneset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

// Reconciler brings CloneSets to what they ask for.
type Reconciler struct {
	kit     *workloads.Kit
	options Options
	memory  memory.Of[types.NamespacedName, knowledge]
	// limited are the texts about creation that waits for pods to become available.
	limited memory.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	kit, err := workloads.New("cloneset", c, workloads.Options{
		Kind: gvk(), Binding: binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now},
		Dependents: workloads.DependentOptions{Claims: true, PullJobs: o.PreDownload},
		Scaling:    failedScale, Updating: failedUpdate, Events: events(), Ask: o.Ask, Explain: o.Explain,
	})
	if err != nil {
		return nil, err
	}
	if o.NewID == nil {
		const length = 5
		o.NewID = func() string { return rand.String(length) }
	}
	return &Reconciler{kit: kit, options: o}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound, err := r.kit.Controller(ctx, mgr, workloads.Controller{
		Name:    "cloneset-controller",
		Options: o,
		Pods:    workloads.WatchOptions{SkipQuiet: r.options.SkipQuiet, Policy: r.options.policy()},
	})
	if err != nil {
		return err
	}
	return bound.Watches(&corev1.PersistentVolumeClaim{}, owned.By(v1beta1.GroupVersion.Group, kind)).Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const kind = "CloneSet"

// Reconcile brings one CloneSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	return workloads.Reconcile(ctx, r.kit, &s.Observation, workloads.Steps[*plan]{
		Plan:   func() (*plan, error) { return r.options.plan(s) },
		Failed: s.failed,
		Parts:  func(p *plan) workloads.Parts { return r.options.parts(s, p) },
		Begin:  func(p *plan) { r.emitLimit(s, p) },
		End:    func(p *plan) { r.remember(s, p) },
	})
}

// remember keeps the ids of pods whose creation was planned and has not succeeded.
func (r *Reconciler) remember(s *snapshot, p *plan) {
	pending, changed := p.pending(s)
	if changed {
		r.memory.Note(s.Key(), func(k *knowledge) { k.pending = pending })
	}
}
