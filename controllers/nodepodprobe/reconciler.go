package nodepodprobe

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler keeps the NodePodProbes of nodes.
type Reconciler struct {
	api     *binding.Binding
	options Options
	// probes is their kind, as untyped objects, and the own writes of them.
	probes  stored.Kind
	markers *markers.Markers
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("nodepodprobe", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, markers: &markers.Markers{Cached: c},
		probes: stored.Kind{GVK: markers.NodeGVK(), Writes: stored.NewWrites(api.Live, api.Now)},
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=podprobemarkers,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	r.markers.Cached = mgr.GetCache()
	indexer := mgr.GetFieldIndexer()
	if err := binding.SharedIndex(indexer.IndexField(ctx, &corev1.Pod{}, markers.NodeField, markers.NodeOf)); err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	index := indexer.IndexField(ctx, stored.Untyped(markers.NodeGVK()), markers.ProbedField, markers.ProbedOf)
	if err := binding.SharedIndex(index); err != nil {
		return fmt.Errorf("index NodePodProbes by marker: %w", err)
	}
	return r.api.Bind(mgr, "nodepodprobe-controller", o).
		For(stored.Untyped(markers.NodeGVK())).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(nodeEvents())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(stored.Untyped(markers.GVK()), r.markerEvents()).
		Complete(r)
}

// Reconcile brings one NodePodProbe in line with its node, and marks the pods of the node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.Name)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p, err := newPlan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	after, err := r.run(ctx, p)
	if r.options.Explain != nil {
		r.options.Explain(ctx, s.name, p.notes)
	}
	return r.api.Result(request, after, err)
}

// run sends the writes of a plan, and returns when to look again. Neither the NodePodProbe nor a pod holds up another
// pod.
func (r *Reconciler) run(ctx context.Context, p *plan) (time.Duration, error) {
	var err error
	outdated := false
	if w := p.probing; w != nil {
		_, err = r.api.Send(ctx, p.key(), w, r.probes.Writes)
		switch {
		case apierrors.IsAlreadyExists(err), w.Verb == write.Delete && apierrors.IsNotFound(err):
			err = nil // the event is on the way
		case write.IsOutdated(err):
			err, outdated = nil, true
		case err != nil:
			err = fmt.Errorf("%s: %w", w, err)
		}
	}
	after, failed := markers.Mark(ctx, r.api, p.key(), p.marks)
	if outdated {
		after = passes.Sooner(after, markers.CatchUp)
	}
	return after, errors.Join(err, failed)
}
