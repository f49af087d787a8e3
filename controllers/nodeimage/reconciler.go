package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/retries"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler keeps the NodeImages of nodes.
type Reconciler struct {
	client client.Client
	// cached is where NodeImages are read from, as untyped objects, and the metadata of jobs.
	cached  client.Reader
	options Options
	// jobless says that there are no pull jobs in this cluster.
	jobless bool

	writes *ledger.Ledger[*unstructured.Unstructured]
	known  knowledge
}

// New makes a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	if c == nil {
		return nil, errors.New("nodeimage: a client is needed")
	}
	r := &Reconciler{client: c, cached: c, options: o.withDefaults()}
	r.keepLedger()
	return r, nil
}

// live reads past the cache.
func (r *Reconciler) live() client.Reader {
	if r.options.Live != nil {
		return r.options.Live
	}
	return r.client
}

func (r *Reconciler) keepLedger() {
	r.writes = ledger.New[*unstructured.Unstructured](r.live(), r.options.Now)
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.cached = mgr.GetCache()
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedger()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(controllerName) //nolint:staticcheck // the newer API does not tell the source
	}
	if err := indexOwners(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index the owners of tags: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(stored.Untyped(gvk()), builder.WithPredicates(imageEvents())).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeEvents())).
		WithOptions(retries.WithDefaults(o))
	_, err := mgr.GetRESTMapper().RESTMapping(jobKind().GroupKind(), jobKind().Version)
	switch r.jobless = meta.IsNoMatchError(err); {
	case r.jobless:
		mgr.GetLogger().Info("Owners of tags are not looked up: ImagePullJobs are not installed", "controller", controllerName)
	case err != nil:
		return fmt.Errorf("look up %s: %w", jobKind().Kind, err)
	default:
		b = b.WatchesMetadata(&v1beta1.ImagePullJob{}, r.jobEvents())
	}
	return b.Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("NodeImage") }

func jobKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImagePullJob") }

const controllerName = "nodeimage-controller"

// Reconcile brings one NodeImage in line with its node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.malformed != nil {
		r.tell(s.image, corev1.EventTypeWarning, reasonInvalidSpec, s.malformed.Error())
	}
	plan := imagepull.Maintain(r.upkeep(ctx, s))
	after, err := r.apply(ctx, s, plan)
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.name, plan.Notes)
	}
	if err := errors.Join(append(s.unsure, err)...); err != nil {
		return ctrl.Result{}, err
	}
	if s.recheckAfter > 0 && (after == 0 || after > s.recheckAfter) {
		after = s.recheckAfter
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

func (r *Reconciler) upkeep(ctx context.Context, s *snapshot) imagepull.Upkeep {
	u := imagepull.Upkeep{
		Node: s.node, Image: s.image, Now: s.now,
		ReadyFor: r.options.CreationDelay, Answer: r.options.ResponseTimeout, Random: spread(s.name),
		SecretGone: func(ref v1beta1.ReferenceObject) bool { return s.sure(r.secretGone(ctx, ref)) },
	}
	if !r.jobless {
		u.OwnerGone = func(ref corev1.ObjectReference) bool { return s.sure(r.jobGone(ctx, ref)) }
	}
	return u
}

// spread has not all nodes looked at in the same moment.
func spread(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}
