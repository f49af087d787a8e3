package workloadspread

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/internal/workloadspread/subset"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler keeps the statuses of WorkloadSpreads, and the deletion costs of their pods.
type Reconciler struct {
	api     *binding.Binding
	options Options

	// index has the WorkloadSpreads, as the events and the own writes left them.
	index   *workloadspread.Index
	targets *workloadspread.Targets
	// pods are the own patches of pods.
	pods *ledger.Ledger[*corev1.Pod]
	// emitted are the warnings that last.
	emitted passes.Texts[types.NamespacedName]
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
		api: api, options: o, index: workloadspread.NewIndex(api.Now),
		targets: &workloadspread.Targets{
			Finder: finder, Live: api.Live, Kinds: &workloadspread.Kinds{Live: api.Live, Namespace: o.Namespace, Now: api.Now},
		},
		pods: stored.NewPodWrites(api.Live, api.Now),
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

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	if err := indexMatches(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	c, err := r.api.Bind(mgr, "workloadspread-controller", o).
		Watches(stored.Untyped(workloadspread.Kind()), r.spreadEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		Build(r)
	if err != nil {
		return err
	}
	r.targets.Start = func(kind schema.GroupVersionKind) error {
		object := stored.MetadataOf(kind, types.NamespacedName{})
		return c.Watch(source.Kind[client.Object](mgr.GetCache(), object, r.workloadEvents(kind.GroupKind())))
	}
	r.targets.Finder.Cached, r.targets.Finder.Indexer, r.targets.Finder.Mapper = mgr.GetCache(), mgr.GetCache(),
		mgr.GetRESTMapper()
	return nil
}

// matchField is the index of pods by the WorkloadSpread that their annotation names.
const matchField = "kruisekit.dev/workloadspread"

func indexMatches(ctx context.Context, indexer client.FieldIndexer) error {
	return binding.SharedIndex(indexer.IndexField(ctx, &corev1.Pod{}, matchField, func(o client.Object) []string {
		if pod, ok := o.(*corev1.Pod); ok {
			if m, is := subset.MatchOf(pod); is {
				return []string{m.Name}
			}
		}
		return nil
	}))
}

// Reconcile brings one WorkloadSpread up to date: the marks of pods, the status, and then the pods that are to be
// created elsewhere.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := plan(s)
	failed := r.send(ctx, request.NamespacedName, s, p.patches, r.pods)
	if s.spread == nil {
		r.pods.Forget(request.NamespacedName)
		return ctrl.Result{}, failed
	}
	if failed != nil {
		p.status.ObservedGeneration = s.spread.Status.ObservedGeneration
	}
	switch err := r.writeStatus(ctx, request.NamespacedName, s, p); {
	case apierrors.IsConflict(err):
		return r.api.Result(request, period, failed) // admission has written the status meanwhile
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, failed
	case err != nil:
		return ctrl.Result{}, errors.Join(failed, fmt.Errorf("write status: %w", err))
	}
	failed = errors.Join(failed, r.send(ctx, request.NamespacedName, s, p.deletions))
	r.emit(request.NamespacedName, s, p.notes)
	return r.api.Result(request, p.after, failed)
}

// send sends writes of pods. A pod whose write fails keeps no other pod from its own. The write of a pod that has
// changed or is gone has not failed. Deletions are in no ledger: a pod that was deleted stays in its subset until the
// cache shows the deletion.
func (r *Reconciler) send( //nolint:revive // ledgers besides four arguments
	ctx context.Context, name types.NamespacedName, s *snapshot, writes []*write.Write, ledgers ...driver.Recorder,
) error {
	var failures []error
	for i, answer := range r.api.SendEach(ctx, name, writes, ledgers...) {
		if answer.Err != nil && !write.IsOutdated(answer.Err) {
			r.emitFailure(s, writes[i], answer.Err)
			failures = append(failures, fmt.Errorf("%s: %w", writes[i], answer.Err))
		}
	}
	return errors.Join(failures...)
}

// writeStatus writes the status, if it changed. The API server rejects the write where admission has recorded a pod
// since.
func (r *Reconciler) writeStatus(ctx context.Context, name types.NamespacedName, s *snapshot, p *pass) error {
	after := *s.spread
	after.Status = p.status
	w, err := stored.WriteStatusVersion(stored.Kind{GVK: workloadspread.Kind()}, s.spread, &after, nil)
	if err != nil || w == nil {
		return err
	}
	answer, err := r.api.Send(ctx, name, w)
	if raw, ok := answer.(*unstructured.Unstructured); ok && err == nil {
		_, err = r.index.Renew(raw)
	}
	return err
}
