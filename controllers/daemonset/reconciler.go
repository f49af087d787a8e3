package daemonset

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/dependents"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/podwatch"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler brings Advanced DaemonSets to what they ask for.
type Reconciler struct {
	kit     *workloads.Kit
	options Options
	memory  memory.Of[types.NamespacedName, knowledge]
	// interests are what sets look at of nodes.
	interests interests
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	kit, err := workloads.New("daemonset", c, workloads.Options{
		Kind: gvk(), Binding: binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now}, Stem: workloads.OwnerOfPod, Cut: workloads.StemOf,
		Dependents: dependents.Options{PullJobs: o.PreDownload, Successors: true},
		Scaling:    failedScale, Updating: failedUpdate, Events: events(), Ask: o.Ask, Explain: o.Explain,
	})
	if err != nil {
		return nil, err
	}
	return &Reconciler{kit: kit, options: o}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	bound, err := r.kit.Controller(ctx, mgr, workloads.Controller{
		Name: controllerName, Options: o, Pods: podwatch.Options{SkipQuiet: r.options.SkipQuiet, Policy: workloads.Policy(r.options.Installed)},
	})
	if err != nil {
		return err
	}
	return bound.Watches(&corev1.Node{}, r.interests.handler()).Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(kind) }

const (
	controllerName = "daemonset-controller"
	kind           = "DaemonSet"
)

// Reconcile brings one DaemonSet a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.Invalid != nil { // the set is left as it is until it changes
		return ctrl.Result{}, reporter().GiveUp(ctx, r.kit, &s.Observation, s.Invalid)
	}
	p, err := r.options.plan(s)
	if err == nil && p.Runs(&s.Observation) && p.needsAllPods(s) {
		read, failed := r.kit.Verify(ctx, &s.Observation)
		if failed != nil {
			return ctrl.Result{}, reporter().GiveUp(ctx, r.kit, &s.Observation, failed)
		}
		if read {
			p, err = r.options.plan(s)
		}
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	r.memory.Note(s.Key(), func(k *knowledge) { k.pods = p.pods })
	if err := r.kit.Revise(ctx, &s.Observation, p.Plan); err != nil {
		return ctrl.Result{}, reporter().GiveUp(ctx, r.kit, &s.Observation, err)
	}
	preDownload := r.kit.PreDownload(ctx, &s.Observation, p.preDownload(s, r.options))
	r.execute(ctx, s, p)
	result := workloads.Result[v1beta1.DaemonSetStatus]{Status: p.status(s), Plan: p.Plan}
	if err := reporter().Report(ctx, r.kit, &s.Observation, result); err != nil {
		return r.kit.Result(request, p.After.After(), err)
	}
	return r.kit.Finish(request, p.Plan, preDownload, r.trim(ctx, s, p))
}

// execute sends the writes of the pass.
func (r *Reconciler) execute(ctx context.Context, s *snapshot, p *plan) {
	if p.Runs(&s.Observation) {
		for _, pod := range p.placed.Failed {
			r.kit.Warningf(s.set, reasonFailedPod, "Found failed daemon pod %s/%s on node %s, will try to kill it", pod.Namespace, pod.Name, pod.Spec.NodeName)
		}
		r.memory.Note(s.Key(), func(k *knowledge) { k.generation, k.backoff, k.equals = s.set.Generation, p.placed.Backoff, p.equals })
		p.After.In(p.placed.RequeueAfter)
		p.Waits = append(p.Waits, p.placed.Notes...)
	}
	var mu sync.Mutex
	var taken []string
	r.kit.Execute(ctx, &s.Observation, p.Plan, func(w *workload.Write, err error) {
		if w.Verb == write.Create && apierrors.IsAlreadyExists(err) && !errors.Is(err, workload.ErrUnobserved) {
			mu.Lock()
			defer mu.Unlock()
			taken = append(taken, w.Object.GetName())
		}
	})
	r.noteTaken(s, taken)
}

// takenFor is how long the name of a pod that another owner has is not tried again.
const takenFor = 10 * time.Minute

// noteTaken has the next passes choose other names for pods.
func (r *Reconciler) noteTaken(s *snapshot, names []string) {
	if len(names)+len(s.known.taken) == 0 {
		return
	}
	all := maps.Clone(s.known.taken)
	maps.DeleteFunc(all, func(_ string, until time.Time) bool { return !s.Now.Before(until) })
	if all == nil {
		all = map[string]time.Time{}
	}
	for _, name := range names {
		all[name] = s.Now.Add(takenFor)
	}
	r.memory.Note(s.Key(), func(k *knowledge) { k.taken = all })
}
