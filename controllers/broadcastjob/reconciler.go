package broadcastjob

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/workloads"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

type broadcastJob = v1beta1.BroadcastJob

// Reconciler runs BroadcastJobs.
type Reconciler struct {
	api     *binding.Binding
	options Options

	jobs stored.Kind
	// confirmed records the jobs whose cached spec is at least as new as a live read.
	confirmed stored.Confirmed
	pods      *ledger.Ledger[*corev1.Pod]
	// waits holds the reason and start of the current wait of each job, for the condition Stalled.
	waits passes.Memory[types.NamespacedName, workloads.Wait]
	// emitted holds the last warnings of each job, to emit each of them once.
	emitted passes.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("broadcastjob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, jobs: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		pods: stored.NewPodWrites(api.Live, api.Now),
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	indexer := mgr.GetFieldIndexer()
	if err := owned.Index(ctx, indexer, &corev1.Pod{}); err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	if err := unfinished().Index(ctx, indexer); err != nil {
		return fmt.Errorf("index BroadcastJobs: %w", err)
	}
	return r.api.Bind(mgr, "broadcastjob-controller", o).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutCounters())).
		Watches(&corev1.Pod{}, owned.By(gvk().Group, gvk().Kind), builder.WithPredicates(podChanges())).
		Watches(&corev1.Node{}, r.nodeEvents()).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("BroadcastJob") }

// Reconcile creates and deletes the pods of one job, and updates its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.invalid != nil {
		return ctrl.Result{}, r.reject(s)
	}
	p := newPlan(s)
	if len(p.remove) > 0 { // the cached spec may be stale: under the stored spec, these pods may have to stay
		after, err := r.confirmed.Confirm(ctx, r.api.Live, r.jobs.GVK, s.job)
		if err != nil || after > 0 {
			return r.api.Result(request, after, err)
		}
	}
	err = r.run(ctx, p)
	r.waits.Note(p.key(), func(wait *workloads.Wait) { *wait = p.wait })
	r.emit(ctx, p)
	return r.api.Result(request, p.after, err)
}

// run sends the writes of a plan. If the plan ends the job, run writes the status first, and stops if that write fails:
// see the laws of this package. Otherwise run writes the status last, even if pod writes failed.
func (r *Reconciler) run(ctx context.Context, p *plan) error {
	job := *p.job
	if p.ends {
		if err := r.writeStatus(ctx, p, &job); err != nil {
			return err
		}
	}
	failed := errors.Join(r.deletePods(ctx, p), r.createPods(ctx, p))
	if !p.ends {
		failed = errors.Join(failed, r.writeStatus(ctx, p, &job))
	}
	if !p.deleteJob {
		return failed
	}
	w := r.jobs.Deletion(&job)
	w.SameVersion = true
	if _, err := r.api.Send(ctx, p.key(), w, r.jobs); client.IgnoreNotFound(err) != nil {
		return errors.Join(failed, fmt.Errorf("delete BroadcastJob: %w", err))
	}
	return failed
}

func (r *Reconciler) deletePods(ctx context.Context, p *plan) error {
	var failed []error
	for i, answer := range r.api.SendEach(ctx, p.key(), p.deletions(), r.pods) {
		failed = append(failed, p.deleted(p.remove[i], answer.Err))
	}
	err := errors.Join(failed...)
	p.announceFailure(reasonFailedDelete, "Error deleting", err)
	return err
}

func (r *Reconciler) createPods(ctx context.Context, p *plan) error {
	var mu sync.Mutex
	err := driver.Alike(p.create, func(pod *corev1.Pod) error {
		_, existed, err := owned.Create(ctx, r.api, p.job, &write.Write{Verb: write.Create, Object: pod}, r.pods)
		mu.Lock()
		defer mu.Unlock()
		return p.created(pod.Name, existed, err)
	}).Err()
	p.announceFailure(reasonFailedCreate, "Error creating", err)
	return err
}

// writeStatus patches the status if it changed. After a successful write it sets job to the new object, and queues the
// event of a phase change.
func (r *Reconciler) writeStatus(ctx context.Context, p *plan, job *broadcastJob) error {
	fresh := *job
	fresh.Status = p.stalled()
	written, err := r.api.WriteStatus(ctx, r.jobs, job, &fresh, counters(&fresh.Status))
	if !written {
		return err
	}
	*job = fresh
	if p.turn != nil {
		p.events = append(p.events, *p.turn)
	}
	return nil
}
