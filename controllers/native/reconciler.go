package native

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/workload/native"
)

// Reconciler rolls out StatefulSets, DaemonSets and, if the options say so, Deployments that ask for it. It has a
// controller for each kind.
type Reconciler struct {
	statefulSets, daemonSets, deployments *loop
}

// loop reconciles the sets of one kind. It is safe for concurrent use.
type loop struct {
	*binding.Binding
	*workloads.Dependents

	kind    native.Kind
	options Options
	repeats passes.Memory[types.NamespacedName, workload.Repeats]
	emitted passes.Texts[types.NamespacedName]
	moved   *prometheus.CounterVec
	// confirmed are the sets that the cache shows as they are stored.
	confirmed stored.Confirmed
	// sets has the writes of ReplicaSets, and unobserved since when holds wait for the built-in controller.
	sets       *ledger.Ledger[*appsv1.ReplicaSet]
	unobserved passes.Memory[types.NamespacedName, time.Time]
	// templates are those that the cache lacks.
	templates passes.Memory[types.NamespacedName, map[types.UID]kept]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	moved := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kruisekit_native_pods_total",
		Help: "Pods of StatefulSets, DaemonSets and Deployments of apps/v1 that went to another revision, by kind and how.",
	}, []string{"kind", "how"})
	if o.Registerer != nil {
		var err error
		if moved, err = metrics.Register(o.Registerer, moved); err != nil {
			return nil, err
		}
	}
	r := &Reconciler{}
	for kind, into := range map[native.Kind]**loop{
		native.KindStatefulSet: &r.statefulSets, native.KindDaemonSet: &r.daemonSets, native.KindDeployment: &r.deployments,
	} {
		api, err := binding.New("native", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
		if err != nil {
			return nil, err
		}
		*into = &loop{
			Binding: api, Dependents: workloads.NewDependents(api, workloads.DependentOptions{}),
			kind: kind, options: o, moved: moved, sets: ledger.New[*appsv1.ReplicaSet](api.Live, api.Now),
		}
	}
	return r, nil
}

// SetupWithManager registers the reconciler. It must come before the manager starts. Its rights are in config/native:
// a manager that does not run it must not have them.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	err := errors.Join(r.statefulSets.setup(ctx, mgr, o), r.daemonSets.setup(ctx, mgr, o))
	if r.deployments.options.Deployments {
		err = errors.Join(err, r.deployments.setup(ctx, mgr, o))
	}
	return err
}

// StatefulSets returns the reconciler of StatefulSets alone, for a caller with queues of its own.
func (r *Reconciler) StatefulSets() reconcile.Reconciler { return r.statefulSets }

// DaemonSets returns the reconciler of DaemonSets alone, for a caller with queues of its own.
func (r *Reconciler) DaemonSets() reconcile.Reconciler { return r.daemonSets }

// Deployments returns the reconciler of Deployments alone, for a caller with queues of its own.
func (r *Reconciler) Deployments() reconcile.Reconciler { return r.deployments }

// Reconcile brings the pods of one set a step closer to its template.
func (l *loop) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := l.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p, err := l.options.plan(s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if after, err := l.confirm(ctx, s, p); err != nil || after > 0 {
		return l.Result(request, after, err)
	}
	if err = l.run(ctx, s, p); err == nil {
		err = l.follow(ctx, s, p)
	}
	return l.Result(request, p.after(s), errors.Join(err, l.report(ctx, s, p)))
}

// confirm reads a set past the cache, once, before a pass that changes pods or ReplicaSets. recheckAfter is zero for a
// pass to make; otherwise the cache shows an older set.
func (l *loop) confirm(ctx context.Context, s *snapshot, p *plan) (recheckAfter time.Duration, err error) {
	if !p.pass.Disrupts() && (p.deployment == nil || p.deployment.IsSettled()) {
		return 0, nil
	}
	return l.confirmed.Confirm(ctx, l.Live, appsv1.SchemeGroupVersion.WithKind(string(l.kind)), s.set)
}

// movedLabel reports whether a write has changed the revision label of a pod.
func movedLabel(before, after *corev1.Pod) bool {
	return before != nil && after != nil && before.Labels[revisionLabel] != after.Labels[revisionLabel]
}
