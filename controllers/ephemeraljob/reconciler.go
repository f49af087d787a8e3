package ephemeraljob

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/ledger"
)

type ephemeralJob = v1alpha1.EphemeralJob

// Reconciler runs EphemeralJobs.
type Reconciler struct {
	api     *binding.Binding
	options Options

	jobs stored.Kind
	// rules are those of the jobs that have not ended, in one list for each namespace.
	rules *watches.Rules[ephemeralJob, *rule]
	// pods are the own writes, by job.
	pods *ledger.Ledger[*corev1.Pod]
	// refused are the pods that refuse containers, by job.
	refused passes.Memory[types.NamespacedName, map[types.UID]refusal]
	// emitted are the events about invalid specs.
	emitted passes.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("ephemeraljob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api: api, options: o, jobs: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		pods: stored.NewPodWrites(api.Live, api.Now), rules: watches.NewRules(newRule),
	}, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=ephemeraljobs/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods/ephemeralcontainers,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := unfinished().Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index EphemeralJobs: %w", err)
	}
	return r.api.Bind(mgr, "ephemeraljob-controller", o).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutCounters())).
		Watches(&corev1.Pod{}, r.podEvents()).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("EphemeralJob") }

// Reconcile brings one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s)
	reported, err := r.run(ctx, p)
	r.refused.Note(s.key(), func(known *map[types.UID]refusal) { *known = p.refused })
	r.emit(ctx, p, reported)
	return r.api.Result(request, p.after, err)
}

// run sends the writes of a plan, and reports whether the status is written, which it is whatever the other writes met.
// The job is deleted where nothing has failed.
func (r *Reconciler) run(ctx context.Context, p *plan) (reported bool, err error) {
	job := *p.job
	if kept, changed := p.finalizers(); changed {
		err = r.writeFinalizers(ctx, &job, kept)
	}
	for writes := p.batch(); len(writes) > 0; writes = p.batch() {
		for i, answer := range r.api.SendEach(ctx, p.key(), writes, r.pods) {
			p.added(writes[i], answer.Err)
		}
	}
	fresh := job
	fresh.Status = p.status()
	reported, failed := r.api.WriteStatus(ctx, r.jobs, &job, &fresh, counters(&fresh.Status))
	err = errors.Join(append(p.failed, err, failed)...)
	if err != nil || !p.deleteJob {
		return reported, err
	}
	w := r.jobs.Deletion(&job)
	w.SameVersion = true
	if _, err := r.api.Send(ctx, p.key(), w, r.jobs); client.IgnoreNotFound(err) != nil {
		return reported, fmt.Errorf("delete EphemeralJob: %w", err)
	}
	return reported, nil
}

// writeFinalizers writes the finalizers of a job, and sets what the API server answered.
func (r *Reconciler) writeFinalizers(ctx context.Context, job *ephemeralJob, finalizers []string) error {
	answer, err := r.api.Send(ctx, client.ObjectKeyFromObject(job), r.jobs.Finalizers(job, finalizers), r.jobs)
	if err != nil {
		return fmt.Errorf("write finalizers: %w", err)
	}
	job.ResourceVersion, job.Finalizers = answer.GetResourceVersion(), finalizers
	return nil
}
