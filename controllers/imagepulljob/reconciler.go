package imagepulljob

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings the images of ImagePullJobs to their nodes.
type Reconciler struct {
	client client.Client
	// objects is where jobs, and the workloads that own them, are read from as untyped objects.
	objects client.Reader
	// copies is where copies of pull secrets are read from.
	copies  client.Reader
	options Options

	jobWrites *ledger.Ledger[*unstructured.Unstructured]
	// nodeWrites are by node: a job sees also what another one has just asked of it.
	nodeWrites *ledger.Ledger[*v1beta1.NodeImage]
	images     decoded
	turns      turns
	// copyWrites are by the secret that was copied.
	copyWrites *ledger.Ledger[*corev1.Secret]
	// claiming is held while copies are looked at and written, so that two jobs do not both make one.
	claiming sync.Mutex
	sources  sources
	told     told
}

// New makes a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("imagepulljob: a client is needed")
	}
	if ttl := o.KeepSeconds; ttl != nil && *ttl < 0 {
		return nil, fmt.Errorf("imagepulljob: KeepSeconds is %d, and cannot be negative", *ttl)
	}
	return &Reconciler{client: c, objects: c, options: o.withDefaults()}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
//
// The rights to pull secrets are not generated: those in the namespace of the copies are in config/daemon, and the one to get
// secrets by name wherever jobs are, which not every cluster wants to give, is in config/pulljobs.

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.objects = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	r.jobWrites = ledger.New[*unstructured.Unstructured](r.options.Live, r.options.Now)
	r.nodeWrites = ledger.New[*v1beta1.NodeImage](r.options.Live, r.options.Now)
	r.copyWrites = ledger.New[*corev1.Secret](r.options.Live, r.options.Now)
	if err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), jobField, r.keysOf); err != nil {
		return fmt.Errorf("index ImagePullJobs: %w", err)
	}
	if err := indexNodes(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	copies, err := r.keepCopies(ctx, mgr)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutProgress())).
		Watches(stored.Untyped(nodeGVK()), r.nodeEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		WatchesRawSource(source.Kind(copies, &corev1.Secret{}, copyEvents())).
		WithOptions(retries.WithDefaults(o))
	switch {
	case r.options.WatchSecrets:
		b = b.WatchesMetadata(&corev1.Secret{}, r.secretEvents())
	case r.options.SecretPeriod > 0:
		b = b.WatchesRawSource(source.Func(r.poll))
	}
	return b.Complete(r)
}

const (
	controllerName = "imagepulljob-controller"
	kind           = "ImagePullJob"
)

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

// Reconcile brings one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := &pass{Reconciler: r, snapshot: s}
	switch {
	case s.ended():
		return p.end(ctx)
	case s.unfit != nil:
		return ctrl.Result{}, errors.Join(p.refuse(ctx), reconcile.TerminalError(s.unfit))
	}
	if wait := s.early(); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return p.advance(ctx)
}

// pass is what one Reconcile knows and does.
type pass struct {
	*Reconciler
	*snapshot
	work
}

// advance tells nodes, and reports how far they are. What failed does not keep the rest from being reported.
func (p *pass) advance(ctx context.Context) (ctrl.Result, error) {
	failed := p.claim(ctx)
	if failed == nil {
		failed = p.tellNodes(ctx)
	}
	plan, err := p.review()
	if err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if err := p.report(ctx, plan); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	p.tellNotes(ctx, plan.Notes)
	switch {
	case failed != nil:
		return ctrl.Result{}, failed
	case p.ended():
		return p.end(ctx)
	case p.again:
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: plan.RequeueAfter}, nil
}
