package imagepull

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/ledger"
)

const (
	controllerName = "imagepuller"
	component      = "kruise-daemon-imagepuller"
)

// Reconciler has the container runtime of a node pull what the NodeImage of that node asks for. It is for one node and
// one manager.
type Reconciler struct {
	api     *binding.Binding
	node    string
	images  Images
	options Options
	turns   turns
	secrets *secretMemory
	space   *space
	metrics *metrics
	// attempts that have not returned.
	attempts sync.WaitGroup

	// mu is held by a pass, and by the end of all.
	mu     sync.Mutex
	jobs   map[imagepull.Reference]*job
	places int64
	busy   map[*attempt]struct{}
	// writes has what the API server answered to the last write, until the cache has it, and limiter paces writes.
	writes  *ledger.Ledger[*v1beta1.NodeImage]
	limiter *rate.Limiter
	closed  bool
}

// New makes a Reconciler of the NodeImage that has the node's name. The client may read from a cache.
func New(c client.Client, node string, images Images, o Options) (*Reconciler, error) {
	switch {
	case c == nil:
		return nil, errors.New("imagepull: a client is needed")
	case node == "":
		return nil, errors.New("imagepull: the name of the node is needed")
	case images == nil:
		return nil, errors.New("imagepull: a container runtime is needed")
	case o.MinFreePercent < 0 || o.MinFreePercent >= 100:
		return nil, fmt.Errorf("imagepull: the free share of %d%% must be at least 0%% and less than 100%%", o.MinFreePercent)
	}
	api, err := binding.New("imagepull", c, binding.Options{Live: o.Live, Now: o.Now})
	if err != nil {
		return nil, err
	}
	disk := &space{images: images, least: o.MinFreePercent, now: api.Now}
	m, err := newMetrics(o.Registerer, disk)
	if err != nil {
		return nil, fmt.Errorf("imagepull: %w", err)
	}
	return &Reconciler{
		api: api, node: node, images: images, options: o, turns: newTurns(o.MaxPulls),
		secrets: newSecretMemory(o.Secrets, api.Now), space: disk, metrics: m,
		jobs: map[imagepull.Reference]*job{}, busy: map[*attempt]struct{}{},
		writes:  ledger.New[*v1beta1.NodeImage](api.Live, api.Now),
		limiter: rate.NewLimiter(writesPerSecond, writesAtOnce),
	}, nil
}

// CacheOf is what a manager's cache should hold of NodeImages: the node's own.
func CacheOf(node string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", node)}
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=kruise-daemon-config,resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts. Passes come one at a time,
// whatever the options say, and no leader is waited for: each node has its own. When the manager ends, pulls are
// cancelled, and what has ended is written.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.secrets.reader == nil {
		r.secrets.reader = mgr.GetAPIReader()
	}
	if r.options.Recorder == nil {
		var err error
		if r.options.Recorder, err = parts.Recorder(mgr, component, r.node); err != nil {
			return err
		}
	}
	o.MaxConcurrentReconciles = 1
	if err := mgr.Add(parts.Task(r.keep)); err != nil {
		return fmt.Errorf("add pulls: %w", err)
	}
	return r.api.Bind(mgr, controllerName, parts.Options(o)).
		For(&v1beta1.NodeImage{}, builder.WithPredicates(r.own(), asked())).
		Complete(r)
}

func (r *Reconciler) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: r.node}}
}

// own is the NodeImage of the node, for managers whose cache has others.
func (r *Reconciler) own() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == r.node })
}

// asked leaves out changes of fields that nothing reads. The status is: others write it too.
func asked() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*v1beta1.NodeImage)
		now, isToo := e.ObjectNew.(*v1beta1.NodeImage)
		return !ok || !isToo || old.UID != now.UID || (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
			!apiequality.Semantic.DeepEqual(old.Spec, now.Spec) || !apiequality.Semantic.DeepEqual(old.Status, now.Status)
	}}
}

// Reconcile brings pulls and status in line with the NodeImage. It does not wait for pulls: their end brings another
// pass.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.Name != r.node {
		return ctrl.Result{}, nil
	}
	after, err := r.pass(ctx)
	// The queue's pause after an error must not hold up pulls.
	return r.api.Result(request, after, err)
}

// keep follows the connection to the runtime until the context ends, and then ends all attempts.
func (r *Reconciler) keep(ctx context.Context) error {
	for ctx.Err() == nil {
		_, changed := r.images.Connected()
		r.api.Requeue(r.request())
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	r.end()
	return nil
}
