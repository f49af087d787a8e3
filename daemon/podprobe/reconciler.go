package podprobe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/background"
	"github.com/kruisekit/kruisekit/daemon/internal/recording"
	"github.com/kruisekit/kruisekit/internal/podprobe"
	"github.com/kruisekit/kruisekit/internal/requeue"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

// Runtime is the container runtime of the node: a *cri.Runtime.
type Runtime interface {
	// Containers returns those that a query selects, the newest first.
	Containers(ctx context.Context, q cri.Query) ([]cri.Container, error)
	// Exec runs a command in a container.
	Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error)
}

const (
	controllerName = "sync_node_pod_probe"
	component      = "kruise-daemon-podprobe"

	// The reasons of events.
	reasonSucceeded = "KruiseProbeSucceeded"
	reasonFailed    = "KruiseProbeFailed"

	// gather is how long results of the same moment are waited for.
	gather = 100 * time.Millisecond
	// The pauses after a patch, before a change of states and before other changes are reported.
	flipPause = time.Second
	slowPause = 10 * time.Second

	// The pauses between passes that fail.
	leastPause = 500 * time.Millisecond
	mostPause  = 50 * time.Second
)

// Reconciler probes the pods of a node. It is for one node and one manager.
type Reconciler struct {
	client  client.Client
	node    string
	options Options
	prober  *prober

	// mu is held for what results wait for.
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	// writes has the NodePodProbe as the last patch left it, until the cache shows that.
	writes *ledger.Ledger[*v1alpha1.NodePodProbe]
	// writtenAt is when the last patch was sent, and refreshedAt when the last one was that changed nothing but times.
	writtenAt, refreshedAt time.Time
}

// New returns a Reconciler of the NodePodProbe that has the name of the node. The client may read from a cache.
func New(c client.Client, node string, runtime Runtime, o Options) (*Reconciler, error) {
	if c == nil || node == "" || runtime == nil {
		return nil, errors.New("podprobe: a client, the name of the node and a runtime are needed")
	}
	o = o.withDefaults()
	r := &Reconciler{client: c, node: node, options: o}
	r.prober = newProber(runtime, o, r.wake)
	r.keepLedger()
	return r, nil
}

func (r *Reconciler) keepLedger() {
	var live client.Reader = r.client
	if r.options.Live != nil {
		live = r.options.Live
	}
	r.writes = ledger.New[*v1alpha1.NodePodProbe](live, r.options.Now)
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts. Passes come one at a time,
// whatever the options say, and no leader is waited for: each node has its own.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Recorder == nil {
		var err error
		if r.options.Recorder, err = recording.For(mgr, component, r.node); err != nil {
			return err
		}
	}
	if r.options.Live == nil {
		r.options.Live = mgr.GetAPIReader()
		r.keepLedger()
	}
	o.MaxConcurrentReconciles, o.NeedLeaderElection = 1, ptr.To(false)
	if o.SkipNameValidation == nil {
		o.SkipNameValidation = ptr.To(true) // two nodes in one process, as in tests
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastPause, mostPause)
	}
	if err := mgr.Add(r.background()); err != nil {
		return fmt.Errorf("add what runs probes: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&v1alpha1.NodePodProbe{}, builder.WithPredicates(r.own(), changed())).
		WatchesRawSource(source.Func(r.hang)).
		WithOptions(o).
		Complete(r)
}

// background is what runs the probes, beside the workers of the controller. SetupWithManager adds it to the manager.
func (r *Reconciler) background() background.Tasks { return background.Tasks{r.prober.work} }

func (r *Reconciler) hang(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = q
	return nil
}

// wake has results reported. Before there is a queue, a pass comes in any case.
func (r *Reconciler) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue != nil {
		r.queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: r.node}}, gather)
	}
}

// own is the NodePodProbe of the node, for managers whose cache has others.
func (r *Reconciler) own() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == r.node })
}

// changed leaves out changes of nothing that is looked at.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.NodePodProbe)
		now, isToo := e.ObjectNew.(*v1alpha1.NodePodProbe)
		return !is || !isToo || was.UID != now.UID || !apiequality.Semantic.DeepEqual(was.Spec, now.Spec) ||
			!apiequality.Semantic.DeepEqual(was.Status, now.Status)
	}}
}

// Reconcile runs the probes of the NodePodProbe, and reports what they found.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.Name != r.node {
		return ctrl.Result{}, nil
	}
	n, again, err := r.latest(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.report(ctx, n)
	result.RequeueAfter = requeue.Sooner(result.RequeueAfter, again)
	return result, err
}

// report runs the probes of a NodePodProbe, and writes what changed.
func (r *Reconciler) report(ctx context.Context, n *v1alpha1.NodePodProbe) (ctrl.Result, error) {
	findings := r.prober.sync(n)
	if n.UID == "" {
		return ctrl.Result{}, nil
	}
	status, flips := podprobe.Report(podprobe.Reporting{Spec: &n.Spec, Status: &n.Status, Findings: findings})
	urgency := podprobe.Compare(&n.Status, &status)
	if urgency == podprobe.Unchanged {
		return ctrl.Result{}, nil
	}
	if wait := r.allowed(urgency).Sub(r.options.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if urgency == podprobe.Aged {
		r.refreshedAt = r.options.Now()
	}
	return r.write(ctx, n, status, flips)
}

// allowed returns from when on a patch may be sent.
func (r *Reconciler) allowed(urgency podprobe.Urgency) time.Time {
	switch urgency {
	case podprobe.Flipped:
		return r.writtenAt.Add(flipPause)
	case podprobe.Aged:
		return r.refreshedAt.Add(podprobe.RefreshAfter)
	}
	return r.writtenAt.Add(slowPause)
}

// latest returns the NodePodProbe of the node as the own writes left it; an empty one where there is none. While the
// cache shows the state before a write, it also returns when to look again: where etcd is restored to an older version,
// no event follows.
func (r *Reconciler) latest(ctx context.Context) (*v1alpha1.NodePodProbe, time.Duration, error) {
	n, key := &v1alpha1.NodePodProbe{}, types.NamespacedName{Name: r.node}
	err := r.client.Get(ctx, key, n)
	switch {
	case apierrors.IsNotFound(err):
		r.writes.Forget(key)
		return &v1alpha1.NodePodProbe{}, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("read NodePodProbe: %w", err)
	}
	all, _, err := r.writes.Overlay(ctx, key, []*v1alpha1.NodePodProbe{n})
	switch {
	case err != nil:
		return nil, 0, err
	case len(all) == 0:
		return &v1alpha1.NodePodProbe{}, 0, nil
	case all[0].UID != n.UID:
		r.writes.Forget(key)
		return n, 0, nil
	case all[0].ResourceVersion != n.ResourceVersion:
		return all[0], ledger.Patience, nil
	}
	return n, 0, nil
}

// write sends the patch, and emits the events of the states that it changed.
func (r *Reconciler) write(
	ctx context.Context, n *v1alpha1.NodePodProbe, status v1alpha1.NodePodProbeStatus, flips []podprobe.Flip,
) (ctrl.Result, error) {
	w := podprobe.StatusWrite(n, status)
	if w == nil {
		return ctrl.Result{}, nil
	}
	body, err := w.Data()
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("encode status: %w", err)
	}
	r.writtenAt = r.options.Now()
	answer := &v1alpha1.NodePodProbe{}
	answer.Name = r.node
	err = r.client.Status().Patch(ctx, answer, client.RawPatch(w.Type, body))
	switch {
	case write.IsOutdated(err):
		return ctrl.Result{RequeueAfter: flipPause}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write status of NodePodProbe: %w", err)
	}
	r.writes.Patched(types.NamespacedName{Name: r.node}, answer)
	r.announce(flips)
	return ctrl.Result{RequeueAfter: ledger.Patience}, nil // the cache may never show the write
}

// announce emits an event for each state that has changed. A state that is not known yet is no news.
func (r *Reconciler) announce(flips []podprobe.Flip) {
	if r.options.Recorder == nil {
		return
	}
	for _, f := range flips {
		reason := reasonFailed
		switch f.State.State {
		case v1alpha1.ProbeUnknown:
			continue
		case v1alpha1.ProbeSucceeded:
			reason = reasonSucceeded
		}
		pod := &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: f.Pod.Namespace, Name: f.Pod.Name, UID: types.UID(f.Pod.UID),
		}
		r.options.Recorder.Event(pod, corev1.EventTypeNormal, reason, f.State.Message)
	}
}
