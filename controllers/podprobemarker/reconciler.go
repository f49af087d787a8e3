package podprobemarker

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/statuspatch"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler works on PodProbeMarkers.
type Reconciler struct {
	api     *binding.Binding
	options Options
	// kind is that of markers, as untyped objects, and the own writes of them. sender marks pods, by the marker.
	kind    stored.Kind
	sender  markers.Sender
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
		kind:   stored.Kind{GVK: markers.GVK(), Writes: stored.NewWrites(api.Live, api.Now)},
		sender: markers.Sender{API: api, Pods: lean.NewWrites(api.Live, api.Now)},
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
	index := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(markers.NodeGVK()), markers.ProbedField, markers.ProbedOf)
	if err := binding.SharedIndex(index); err != nil {
		return fmt.Errorf("index NodePodProbes by marker: %w", err)
	}
	return r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(markers.GVK())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Watches(stored.Untyped(markers.NodeGVK()), r.probeEvents()).
		Complete(r)
}

const (
	controllerName = "podprobemarker-controller"

	// waitForNodes is how long a marker that is deleted waits for the event that no node runs its probes any more.
	waitForNodes = 30 * time.Second

	// reasonInvalidSpec is not among the reference's, which stops working.
	reasonInvalidSpec = "InvalidSpec"
)

// Reconcile works on one marker.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.malformed != nil {
		r.api.Event(s.marker, corev1.EventTypeWarning, reasonInvalidSpec, s.malformed.Error())
	}
	var others []*v1alpha1.PodProbeMarker
	if r.options.Serverless && len(s.virtual) > 0 {
		if others, err = r.markers.In(ctx, request.Namespace); err != nil {
			return ctrl.Result{}, err
		}
	}
	after, err := r.execute(ctx, s, plan(s, others, r.options.Serverless))
	if s.running {
		after = max(after, waitForNodes)
	}
	return r.api.Result(request, after, err)
}

// execute sends the writes of a pass, and returns when to look again; zero for when something happens.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p pass) (time.Duration, error) {
	if p.writeFinalizers {
		answer, err := r.kind.WriteFinalizers(ctx, r.api.Client, s.marker, p.finalizers)
		switch {
		case write.IsOutdated(err):
			return markers.CatchUp, nil
		case err != nil:
			return 0, err
		}
		s.marker.ResourceVersion = answer.GetResourceVersion()
	}
	after, failure := r.sender.Send(ctx, client.ObjectKeyFromObject(s.marker), p.marks)
	if p.status == nil {
		return after, failure
	}
	is := *s.marker
	is.Status = *p.status
	writer := statuspatch.Writer{Client: r.api.Client, Kind: r.kind}
	_, err := writer.Write(ctx, s.marker, &is, map[string]any{"observedGeneration": p.status.ObservedGeneration})
	if apierrors.IsConflict(err) {
		return markers.CatchUp, failure
	}
	return after, errors.Join(failure, err)
}
