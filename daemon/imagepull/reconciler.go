package imagepull

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

const (
	controllerName = "imagepuller"
	eventSource    = "kruise-daemon-imagepuller"

	// The pauses between passes that fail.
	leastPause = 500 * time.Millisecond
	mostPause  = 50 * time.Second
)

// Reconciler has the container runtime of a node pull what the NodeImage of that node asks for. It is for one node and
// one manager.
type Reconciler struct {
	client  client.Client
	node    string
	images  Images
	options Options
	turns   turns
	secrets *secretMemory
	space   *space
	metrics *metrics
	bell    bell
	mail    mail
	// attempts that have not returned.
	attempts sync.WaitGroup

	// mu is held by a pass, and by the end of all.
	mu       sync.Mutex
	jobs     map[imagepull.Reference]*job
	places   int64
	busy     map[*attempt]struct{}
	progress time.Time
	// noRoom is when an event last reported pulls that wait for room.
	noRoom time.Time
	book   book
	closed bool
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
	o = o.withDefaults()
	disk := newSpace(images, o)
	m, err := newMetrics(o.Registerer, disk)
	if err != nil {
		return nil, fmt.Errorf("imagepull: %w", err)
	}
	r := &Reconciler{
		client: c, node: node, images: images, options: o, turns: newTurns(o), secrets: newSecretMemory(o), space: disk,
		metrics: m, jobs: map[imagepull.Reference]*job{}, busy: map[*attempt]struct{}{}, book: newBook(),
	}
	r.keepLedger()
	return r, nil
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
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedger()
	}
	if r.options.Recorder == nil {
		r.options.Recorder = mgr.GetEventRecorderFor(eventSource)
	}
	o.MaxConcurrentReconciles, o.NeedLeaderElection = 1, ptr.To(false)
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true) // tests run several nodes in one process
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	}
	if err := mgr.Add(keeper{r}); err != nil {
		return fmt.Errorf("add pulls: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&v1beta1.NodeImage{}, builder.WithPredicates(r.own(), asked())).
		WatchesRawSource(source.Func(func(
			_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
		) error {
			r.bell.hang(queue, r.request())
			return nil
		})).
		WithOptions(o).
		Complete(r)
}

func (r *Reconciler) request() reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Name: r.node}}
}

// own is the NodeImage of the node, for managers whose cache has others.
func (r *Reconciler) own() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == r.node })
}

// asked leaves out changes of nothing that is looked at. The status is: others write it too.
func asked() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, is := e.ObjectOld.(*v1beta1.NodeImage)
		now, isToo := e.ObjectNew.(*v1beta1.NodeImage)
		return !is || !isToo || old.UID != now.UID || (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
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
	if err != nil {
		// The queue's pause after an error must not hold up pulls.
		if after > 0 {
			r.bell.ring(after)
		}
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// keeper is the part of a Reconciler that starts and ends with the manager.
type keeper struct{ *Reconciler }

// NeedLeaderElection is false: each node has its own.
func (keeper) NeedLeaderElection() bool { return false }

// Start looks after the connection to the runtime until the context ends, and then after what is left to do.
func (k keeper) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		_, changed := k.images.Connection()
		k.bell.ring(0)
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return k.end(ctx)
}

// bell asks for another pass.
type bell struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	request reconcile.Request
}

func (b *bell) hang(queue workqueue.TypedRateLimitingInterface[reconcile.Request], request reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.request = queue, request
}

// ring is heard as soon as there is a queue. Before, a pass is to come in any case.
func (b *bell) ring(after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue != nil {
		b.queue.AddAfter(b.request, after)
	}
}
