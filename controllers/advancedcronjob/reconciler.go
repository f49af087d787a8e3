package advancedcronjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler creates the children of AdvancedCronJobs.
type Reconciler struct {
	api     *binding.Binding
	options Options

	// jobs and their children are read untyped, as the own writes left them.
	jobs       stored.Kind
	childKinds map[v1beta1.TemplateKind]stored.Kind
	// absent are the kinds of children that the API server does not serve.
	absent  map[v1beta1.TemplateKind]bool
	emitted passes.Texts[types.NamespacedName]
	// verified are the objects that were read live, as they are before their first child.
	verified passes.Memory[types.NamespacedName, types.UID]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("advancedcronjob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if o.Local == nil {
		o.Local = time.Local
	}
	kind := func(gvk schema.GroupVersionKind) stored.Kind {
		return stored.Kind{GVK: gvk, Writes: stored.NewWrites(api.Live, api.Now)}
	}
	r := &Reconciler{
		api: api, options: o, jobs: kind(v1beta1.GroupVersion.WithKind("AdvancedCronJob")),
		childKinds: map[v1beta1.TemplateKind]stored.Kind{}, absent: map[v1beta1.TemplateKind]bool{},
	}
	for _, k := range kinds() {
		r.childKinds[k.name] = kind(k.gvk)
	}
	return r, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=advancedcronjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=broadcastjobs;imagelistpulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	b := r.api.Bind(mgr, "advancedcronjob-controller", o).For(stored.Untyped(r.jobs.GVK))
	for _, k := range kinds() {
		served, err := binding.Installed(mgr.GetRESTMapper(), k.gvk)
		if err != nil {
			return err
		}
		if !served {
			r.absent[k.name] = true
			continue
		}
		if err := owned.Index(ctx, mgr.GetFieldIndexer(), stored.Untyped(k.gvk)); err != nil {
			return fmt.Errorf("index %ss: %w", k.gvk.Kind, err)
		}
		b = b.Watches(stored.Untyped(k.gvk), owned.By(r.jobs.GVK.Group, r.jobs.GVK.Kind))
	}
	return b.Complete(r)
}

// Reconcile brings one object a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s)
	if s.undecodable == nil {
		err = r.run(ctx, p)
	}
	r.emit(ctx, p)
	return r.api.Result(request, p.after, err)
}

// run sends the writes of a plan. The status is written also where another write failed.
func (r *Reconciler) run(ctx context.Context, p *plan) (err error) {
	children := r.childKinds[p.kind.name]
	p.replaced, err = r.deleteChildren(ctx, p, p.replace)
	if p.create != nil && err == nil {
		creation := &write.Write{Verb: write.Create, Object: p.create}
		have, existed, failed := owned.Create(ctx, r.api, p.job, creation, children)
		err = p.answerCreate(have, existed, failed)
	}
	fresh := *p.job
	fresh.Status = p.status()
	if _, failed := r.api.WriteStatus(ctx, r.jobs, p.job, &fresh, nil); failed != nil {
		return errors.Join(err, failed)
	}
	p.recorded = true
	var failed error
	p.trimmed, failed = r.deleteChildren(ctx, p, p.trim)
	return errors.Join(err, failed)
}

// deleteChildren deletes children, and returns how many are gone.
func (r *Reconciler) deleteChildren(ctx context.Context, p *plan, children []child) (int, error) {
	kind := r.childKinds[p.kind.name]
	gone, err := r.api.DeleteEach(ctx, p.key(), deletions(kind, children), kind)
	for _, c := range gone {
		p.gone[c.GetUID()] = true
	}
	return len(gone), err
}

// forget drops what is known of an object that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.jobs.Writes.Forget(name)
	for _, kind := range r.childKinds {
		kind.Writes.Forget(name)
	}
	r.emitted.Forget(name)
	r.verified.Forget(name)
}
