package podprobe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/daemon/cri"
	"github.com/kruisekit/kruisekit/daemon/internal/parts"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/podprobe"
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
)

// Reconciler probes the pods of a node. It is for one node and one manager.
type Reconciler struct {
	api     *binding.Binding
	node    string
	options Options
	prober  *prober
	// waking means that results are waited for, and a pass follows.
	waking atomic.Bool

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
	api, err := binding.New("podprobe", c, binding.Options{Live: o.Live, Now: o.Now})
	if err != nil {
		return nil, err
	}
	r := &Reconciler{api: api, node: node, options: o, writes: ledger.New[*v1alpha1.NodePodProbe](api.Live, api.Now)}
	r.prober = newProber(runtime, api.Now, r.wake)
	return r, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodepodprobes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts. Passes come one at a time,
// whatever the options say, and no leader is waited for: each node has its own.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, o controller.Options) error {
	if r.options.Recorder == nil {
		var err error
		if r.options.Recorder, err = parts.Recorder(mgr, component, r.node); err != nil {
			return err
		}
	}
	o.MaxConcurrentReconciles = 1
	if err := mgr.Add(parts.Task(r.prober.work)); err != nil {
		return fmt.Errorf("add what runs probes: %w", err)
	}
	return r.api.Bind(mgr, controllerName, parts.Options(o)).
		For(&v1alpha1.NodePodProbe{}, builder.WithPredicates(r.own(), changed())).
		Complete(r)
}

// wake has results reported, all of the same moment at once. Before there is a queue, a pass comes in any case.
func (r *Reconciler) wake() {
	if r.waking.Swap(true) {
		return
	}
	time.AfterFunc(gather, func() {
		r.waking.Store(false) // first, so that no later result is missed
		r.api.Requeue(ctrl.Request{NamespacedName: types.NamespacedName{Name: r.node}})
	})
}

// own is the NodePodProbe of the node, for managers whose cache has others.
func (r *Reconciler) own() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == r.node })
}

// changed leaves out changes of fields that nothing reads.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*v1alpha1.NodePodProbe)
		now, isToo := e.ObjectNew.(*v1alpha1.NodePodProbe)
		return !ok || !isToo || was.UID != now.UID || !apiequality.Semantic.DeepEqual(was.Spec, now.Spec) ||
			!apiequality.Semantic.DeepEqual(was.Status, now.Status)
	}}
}

// Reconcile runs the probes of the NodePodProbe, and reports what they found.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.Name != r.node {
		return ctrl.Result{}, nil
	}
	n, again, err := parts.Latest(ctx, r.api.Client, r.writes, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if n == nil {
		n = &v1alpha1.NodePodProbe{}
	}
	result, err := r.report(ctx, n)
	result.RequeueAfter = passes.Sooner(result.RequeueAfter, again)
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
	if wait := r.allowed(urgency).Sub(r.api.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if urgency == podprobe.Aged {
		r.refreshedAt = r.api.Now()
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
	r.writtenAt = r.api.Now()
	answer := &v1alpha1.NodePodProbe{}
	answer.Name = r.node
	err = r.api.Client.Status().Patch(ctx, answer, client.RawPatch(w.Type, body))
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
