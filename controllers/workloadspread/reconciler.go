package workloadspread

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/once"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	spreads "github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/ledger"
)

// Reconciler keeps the statuses of WorkloadSpreads, and the deletion costs of their pods.
type Reconciler struct {
	api     *binding.Binding
	options Options

	spreads stored.Kind
	// index has what the events have shown, to find the WorkloadSpreads of a pod.
	index   *spreads.Index
	targets *spreads.Targets
	pods    *ledger.Ledger[*corev1.Pod]
	emitted once.Texts[about]
	pace    pacer

	// watching is held while watches of workloads are started.
	watching   sync.Mutex
	started    bool
	controller controller.Controller
	cache      cache.Cache
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("workloadspread", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if o.Versioned == nil {
		o.Versioned = subset.DefaultVersioned()
	}
	finder := &replicas.Finder{Cached: c, Live: api.Live, Scales: c, Mapper: c.RESTMapper(), Now: api.Now}
	return &Reconciler{
		api: api, options: o, index: spreads.NewIndex(),
		spreads: stored.Kind{GVK: spreads.Kind(), Writes: stored.NewWrites(api.Live, api.Now)},
		targets: &spreads.Targets{Finder: finder, Live: api.Live, Kinds: &spreads.Kinds{Live: api.Live, Namespace: o.Namespace, Now: api.Now}},
		pods:    lean.NewWrites(api.Live, api.Now),
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=workloadspreads/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups="*",resources="*/scale",verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",namespace=kruise-system,resources=configmaps,resourceNames=kruise-configuration,verbs=get

const controllerName = "workloadspread-controller"

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	if err := indexMatches(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	c, err := r.api.Bind(mgr, controllerName, o).
		Watches(stored.Untyped(spreads.Kind()), r.spreadEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Build(r)
	if err != nil {
		return err
	}
	r.controller, r.cache = c, mgr.GetCache()
	r.targets.Finder.Cached, r.targets.Finder.Indexer, r.targets.Finder.Mapper = mgr.GetCache(), mgr.GetCache(), mgr.GetRESTMapper()
	return nil
}

// matchField is the index of pods by the WorkloadSpread that their annotation names.
const matchField = "kruisekit.dev/workloadspread"

func indexMatches(ctx context.Context, indexer client.FieldIndexer) error {
	return binding.SharedIndex(indexer.IndexField(ctx, &corev1.Pod{}, matchField, func(o client.Object) []string {
		if pod, is := o.(*corev1.Pod); is {
			if m, is := subset.MatchOf(pod); is {
				return []string{m.Name}
			}
		}
		return nil
	}))
}

// Reconcile brings one WorkloadSpread up to date: the marks of pods, the status, and then the pods that are to be created elsewhere.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	first := plan(s, r.api.Now())
	failed := r.patch(ctx, s, first.patches)
	s.unmarked = failed != nil || first.more
	p, err := r.report(ctx, s)
	if err != nil || p == nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	err = errors.Join(failed, r.reschedule(ctx, s, p.stuck))
	r.emit(s, p)
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.key(), p.notes)
	}
	return r.api.Result(request, p.after, err)
}

// attempts at a status that admission writes at the same time.
const attempts = 5

// report writes the status if it is another one, and returns the pass; nil where the WorkloadSpread is gone. After a conflict the pass is planned
// again with the live object, so that no record of admission is lost.
func (r *Reconciler) report(ctx context.Context, s *snapshot) (*pass, error) {
	for attempt := 1; ; attempt++ {
		p := plan(s, r.api.Now())
		err := r.write(ctx, s, p)
		if err == nil || apierrors.IsNotFound(err) {
			return p, client.IgnoreNotFound(err)
		}
		if !apierrors.IsConflict(err) || attempt == attempts {
			return nil, fmt.Errorf("write status: %w", err)
		}
		fresh := stored.Untyped(spreads.Kind())
		switch err := r.api.Live.Get(ctx, s.key(), fresh); {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read WorkloadSpread live: %w", err)
		case fresh.GetUID() != s.spread.UID || fresh.GetGeneration() != s.spread.Generation:
			return nil, errOutdated // the event of the change may have been seen before
		}
		if s.spread, _, err = stored.Decode[subset.Spread](fresh); err != nil {
			return nil, err
		}
	}
}

// errOutdated is a spec that changed during the pass.
var errOutdated = errors.New("the WorkloadSpread changed during the pass")

// write sends the status where it differs. It is refused where another writer has changed the object. A generation is observed when the costs of the
// pods stand, so that a scale-in after it deletes the right pods.
func (r *Reconciler) write(ctx context.Context, s *snapshot, p *pass) error {
	is := *s.spread
	is.Status = p.status
	if s.unmarked {
		is.Status.ObservedGeneration = s.spread.Status.ObservedGeneration
	}
	patch, err := statuspatch.Merge(s.spread, &is, nil, statuspatch.SameVersion)
	if err != nil || patch == nil {
		return err
	}
	answer := r.spreads.Named(s.key())
	if err := r.api.Client.Status().Patch(ctx, answer, patch); err != nil {
		return err
	}
	r.spreads.Writes.Patched(s.key(), answer)
	return nil
}

// reschedule deletes pods that find no node, so that their workload creates them elsewhere.
func (r *Reconciler) reschedule(ctx context.Context, s *snapshot, stuck []*corev1.Pod) error {
	for _, pod := range stuck {
		uid := pod.UID
		err := r.api.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: uid}}, client.Preconditions{UID: &uid})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			r.api.Warningf(s.spread, subset.NoteNotDeleted, "Failed to delete pod %s, which finds no node: %v", pod.Name, err)
			return fmt.Errorf("delete pod %s: %w", pod.Name, err)
		}
	}
	return nil
}
