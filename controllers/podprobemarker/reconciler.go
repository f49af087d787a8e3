package podprobemarker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/internal/markers"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler works on PodProbeMarkers.
type Reconciler struct {
	api     *binding.Binding
	options Options
	// kind is that of markers, as untyped objects, and the own writes of them. marks are those of pods, by the marker.
	kind    stored.Kind
	marks   markers.Memory
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
		kind:  stored.Kind{GVK: markers.GVK(), Writes: stored.NewWrites(api.Live, api.Now)},
		marks: markers.Memory{Pods: lean.NewWrites(api.Live, api.Now)},
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
)

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
	if len(p.marks) > 0 {
		r.marks.Keep(request.NamespacedName, p.known)
	}
	all := p.pass()
	err = driver.Run(ctx, all, driver.Options[*write.Write]{
		Send: runtimeclient.Sender(r.api.Client, r.api.Live), Now: r.api.Now,
		Owner: request.NamespacedName, Ledgers: []driver.Recorder{r.kind.Writes, r.marks.Pods},
		Answered: func(w *write.Write, _ write.Object, err error) { markers.EmitRefused(r.api, w, err) },
	})
	r.emitInvalid(s)
	after := all.RequeueAfter()
	if s.running {
		after = max(after, waitForNodes)
	}
	return r.api.Result(request, after, err)
}
