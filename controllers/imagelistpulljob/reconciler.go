package imagelistpulljob

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// Reconciler makes the pull jobs of lists.
type Reconciler struct {
	api *binding.Binding

	// listObjects and jobObjects are read untyped, as the own writes left them.
	listObjects, jobObjects stored.Kind
	// emitted are the events of lists that cannot work.
	emitted passes.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("imagelistpulljob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		api:         api,
		listObjects: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		jobObjects:  stored.Kind{GVK: jobKind(), Writes: stored.NewWrites(api.Live, api.Now)},
	}, nil
}

// forget drops what is known of a list that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.listObjects.Writes.Forget(name)
	r.jobObjects.Writes.Forget(name)
	r.emitted.Forget(name)
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagelistpulljobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := owned.Index(ctx, mgr.GetFieldIndexer(), stored.Untyped(jobKind())); err != nil {
		return fmt.Errorf("index ImagePullJobs: %w", err)
	}
	return r.api.Bind(mgr, "imagelistpulljob-controller", o).
		For(stored.Untyped(gvk())).
		Watches(stored.Untyped(jobKind()), owned.By(v1beta1.GroupVersion.Group, gvk().Kind)).
		Complete(r)
}

func gvk() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImageListPullJob") }

func jobKind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("ImagePullJob") }

// Reconcile brings one list a step closer to what it asks for.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.invalid != nil {
		r.emitInvalid(s, s.invalid.Error())
		return ctrl.Result{}, nil //nolint:nilerr // only another spec helps
	}
	p := newPlan(s)
	err = r.run(ctx, p)
	r.emit(ctx, p)
	return r.api.Result(request, p.after(), err)
}

// run sends the writes of a plan. Nothing follows a label that is not written; the status is written also where a job
// was refused.
func (r *Reconciler) run(ctx context.Context, p *plan) error {
	if p.Delete { // the garbage collector deletes its jobs
		_, err := r.api.Send(ctx, p.key(), r.listObjects.Deletion(p.list), r.listObjects)
		return client.IgnoreNotFound(err)
	}
	if w := p.label(r.listObjects); w != nil {
		if _, err := r.api.Send(ctx, p.key(), w, r.listObjects); err != nil {
			return fmt.Errorf("label list: %w", err)
		}
	}
	if p.list.Status.CompletionTime != nil {
		return nil
	}
	p.runs = true
	p.notCreated = r.createJobs(ctx, p)
	p.notDeleted = r.deleteJobs(ctx, p)
	fresh := *p.list
	fresh.Status = p.Status
	_, err := r.api.WriteStatus(ctx, r.listObjects, p.list, &fresh, counters(&fresh.Status))
	return errors.Join(p.notCreated, p.notDeleted, err)
}

// createJobs creates the jobs that are missing. One that is refused holds up no other image.
func (r *Reconciler) createJobs(ctx context.Context, p *plan) error {
	jobs, err := p.creations()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	return driver.Each(jobs, func(job *unstructured.Unstructured) error {
		creation := &write.Write{Verb: write.Create, Object: job}
		_, existed, err := owned.Create(ctx, r.api, p.list, creation, r.jobObjects)
		mu.Lock()
		defer mu.Unlock()
		return p.answerCreate(job, existed, err)
	}).Err()
}

// deleteJobs deletes the jobs of images that are no longer in the list.
func (r *Reconciler) deleteJobs(ctx context.Context, p *plan) error {
	writes := make([]*write.Write, 0, len(p.DeleteJobs))
	for _, job := range p.DeleteJobs {
		writes = append(writes, r.jobObjects.Deletion(job))
	}
	gone, err := r.api.DeleteEach(ctx, p.key(), writes, r.jobObjects)
	p.deleted = len(gone)
	return err
}
