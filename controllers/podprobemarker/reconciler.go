package podprobemarker

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler works on PodProbeMarkers.
type Reconciler struct {
	api     *binding.Binding
	options Options
	// kind is that of markers, as untyped objects, and the own writes of them.
	kind    stored.Kind
	markers *markers.Markers
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("podprobemarker", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, markers: &markers.Markers{Cached: c},
		kind: stored.Kind{GVK: markers.GVK(), Writes: stored.NewWrites(api.Live, api.Now)},
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.markers.Cached = mgr.GetCache()
	index := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(markers.NodeGVK()),
		markers.ProbedField, markers.ProbedOf)
	if err := binding.SharedIndex(index); err != nil {
		return fmt.Errorf("index NodePodProbes by marker: %w", err)
	}
	return r.api.Bind(mgr, "podprobemarker-controller", o).
		For(stored.Untyped(markers.GVK())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Complete(r)
}

// waitForNodes is when a deleted marker is reconciled again while a node runs its probes.
const waitForNodes = time.Second

// Reconcile works on one marker.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p, err := newPlan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	after, err := r.run(ctx, s, p)
	r.emitInvalid(s)
	if s.running {
		after = max(after, waitForNodes)
	}
	return r.api.Result(request, after, err)
}

// run sends the writes of a plan, and returns when to look again. Where the marker has changed since it was read, the
// next plan decides about the rest.
func (r *Reconciler) run(ctx context.Context, s *snapshot, p *plan) (time.Duration, error) {
	if err := r.send(ctx, s, p.finalizer); err != nil {
		return afterOutdated(0, err)
	}
	after, failed := markers.Mark(ctx, r.api, s.key(), p.marks)
	after, err := afterOutdated(after, r.send(ctx, s, p.status))
	return after, errors.Join(failed, err)
}

func (r *Reconciler) send(ctx context.Context, s *snapshot, w *write.Write) error {
	if w == nil {
		return nil
	}
	if _, err := r.api.Send(ctx, s.key(), w, r.kind.Writes); err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	return nil
}

// afterOutdated returns when to look again after a write that was based on a stale marker, which is no error.
func afterOutdated(after time.Duration, err error) (time.Duration, error) {
	if write.IsOutdated(err) {
		return passes.Sooner(after, markers.CatchUp), nil
	}
	return after, err
}
