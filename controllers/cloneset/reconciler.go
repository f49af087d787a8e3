package cloneset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler brings CloneSets to what they ask for.
type Reconciler struct {
	client client.Client
	// sets is where CloneSets are read from, as untyped objects.
	sets    client.Reader
	options Options

	podWrites      *ledger.Ledger[*corev1.Pod]
	claimWrites    *ledger.Ledger[*corev1.PersistentVolumeClaim]
	revisionWrites *ledger.Ledger[*appsv1.ControllerRevision]
	jobWrites      *ledger.Ledger[*metav1.PartialObjectMetadata]
	memory         memory
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("cloneset: a client is needed")
	}
	r := &Reconciler{client: c, sets: c, options: o.withDefaults()}
	r.keepLedgers()
	return r, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

func (r *Reconciler) keepLedgers() {
	r.podWrites = ledger.New[*corev1.Pod](r.live(), r.options.Now)
	r.claimWrites = ledger.New[*corev1.PersistentVolumeClaim](r.live(), r.options.Now)
	r.revisionWrites = ledger.New[*appsv1.ControllerRevision](r.live(), r.options.Now)
	r.jobWrites = ledger.New[*metav1.PartialObjectMetadata](r.live(), r.options.Now)
}

// forget drops the writes of a set that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.podWrites.Forget(name)
	r.claimWrites.Forget(name)
	r.revisionWrites.Forget(name)
	r.jobWrites.Forget(name)
	r.memory.forget(name)
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
	r.sets = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedgers()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	kinds := []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &appsv1.ControllerRevision{}}
	if r.options.PreDownload {
		switch there, err := isInstalled(mgr.GetRESTMapper(), "ImagePullJob"); {
		case err != nil:
			return err
		case !there:
			mgr.GetLogger().Info("no images are pulled ahead: ImagePullJobs are not installed", "controller", controllerName)
			r.options.PreDownload = false
		default:
			kinds = append(kinds, metadataOf(&v1beta1.ImagePullJob{}))
		}
	}
	for _, object := range kinds {
		if err := owned.Index(ctx, mgr.GetFieldIndexer(), object); err != nil {
			return fmt.Errorf("index %T: %w", object, err)
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutEchoes())).
		Watches(&corev1.Pod{}, owned.By(v1beta1.GroupVersion.Group, kind), builder.WithPredicates(r.options.podEvents())).
		Watches(&corev1.PersistentVolumeClaim{}, owned.By(v1beta1.GroupVersion.Group, kind)).
		WithOptions(retries.WithDefaults(o)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const (
	controllerName = "cloneset-controller"
	kind           = "CloneSet"
)

// Reconcile brings one CloneSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.unfit != nil {
		return ctrl.Result{}, r.refuse(ctx, s)
	}
	p, err := r.plan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	a := &act{Reconciler: r, snapshot: s, plan: p}
	if err := a.revise(ctx); err != nil {
		a.tell(corev1.EventTypeWarning, reasonFailedCreate, "failed to keep the revision: %v", err)
		return ctrl.Result{}, errors.Join(err, a.giveUp(ctx, err))
	}
	ahead := a.preDownload(ctx)
	if s.set.DeletionTimestamp == nil {
		a.lead(ctx)
		a.explain(ctx)
	}
	if err := a.report(ctx); err != nil {
		return ctrl.Result{}, err
	}
	err = a.outcome(a.scaleErr, a.updateErr, ahead, a.trim(ctx))
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: sooner(a.after, s.recheckAfter)}, nil
}

// sooner is the earlier of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}
