package imagepulljob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/contended"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/pullsecrets"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/runtimeclient"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/memory"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/write"
)

type (
	pullJob   = v1beta1.ImagePullJob
	nodeImage = v1beta1.NodeImage
)

// Reconciler brings the images of ImagePullJobs to their nodes.
type Reconciler struct {
	api     *binding.Binding
	options Options

	jobs stored.Kind
	// nodeImages are written by all jobs: a job sees also what another one has just asked of a node.
	nodeImages contended.Sender[nodeImage, *nodeImage]
	decoded    stored.Memo[nodeImage, *nodeImage]
	secrets    *pullsecrets.Keeper
	// rules are those of the jobs that label selectors of nodes or pods concern, in one list for each interest.
	rules *watches.Rules[pullJob, *imagepull.Rule]
	// emitted are the notes that were emitted as events.
	emitted memory.Texts[types.NamespacedName]
}

// New returns a Reconciler. The client may read from a cache. SetupWithManager comes before the first Reconcile.
func New(c client.Client, o Options) (*Reconciler, error) {
	api, err := binding.New("imagepulljob", c, binding.Options{Live: o.Live, Recorder: o.Recorder, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if ttl := o.KeepSeconds; ttl != nil && *ttl < 0 {
		return nil, fmt.Errorf("imagepulljob: KeepSeconds is %d, and cannot be negative", *ttl)
	}
	o = o.withDefaults()
	r := &Reconciler{
		api: api, options: o, jobs: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		secrets: pullsecrets.New(api, pullsecrets.Options{
			Namespace: o.SecretNamespace, Unobserved: !o.WatchSecrets && o.SecretPeriod < 0,
		}),
		rules: watches.NewRules(imagepull.NewRule),
	}
	r.nodeImages.Sends, r.nodeImages.Cached = runtimeclient.Sender(c, api.Live), r.nodeNamed
	r.nodeImages.Writes = ledger.New[*nodeImage](api.Live, api.Now)
	return r, nil
}

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=nodeimages,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
//
// The rights to pull secrets are not generated: those in the namespace of the copies are in config/daemon, and the one
// to get secrets by name wherever jobs are, which not every cluster wants to give, is in config/pulljobs.

// SetupWithManager registers the reconciler. It must come before the manager starts.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, stored.Untyped(gvk()), jobField, r.keysOf); err != nil {
		return fmt.Errorf("index ImagePullJobs: %w", err)
	}
	if err := binding.SharedIndex(mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, nodeField, nodeOf)); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	copies, err := r.secrets.Cache(ctx, mgr)
	if err != nil {
		return err
	}
	b := r.api.Bind(mgr, controllerName, o).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutProgress())).
		Watches(stored.Untyped(nodeGVK()), r.nodeEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		WatchesRawSource(source.Kind(copies, &corev1.Secret{}, copyEvents()))
	switch {
	case r.options.WatchSecrets:
		b = b.WatchesMetadata(&corev1.Secret{}, r.secretEvents())
	case r.options.SecretPeriod > 0:
		b = b.WatchesRawSource(source.Func(r.poll))
	}
	return b.Complete(r)
}

const controllerName = "imagepulljob-controller"

func gvk() schema.GroupVersionKind     { return v1beta1.GroupVersion.WithKind("ImagePullJob") }
func nodeGVK() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("NodeImage") }

// Reconcile brings one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	p := newPlan(s, r.options, r.jobs)
	err = driver.Run(ctx, p.pass(), driver.Options[*write.Write]{
		Send: r.nodeImages.Send, Ask: func(ctx context.Context, _ *write.Write) error { return r.keep(ctx, p) },
		Now: r.api.Now, Owner: s.key(), Ledgers: []driver.Recorder{r.jobs},
	})
	r.emit(ctx, p)
	return r.api.Result(request, p.after, err)
}

// keep makes the copies of pull secrets that a job needs, or gives up those of a job that has ended.
func (r *Reconciler) keep(ctx context.Context, p *plan) (err error) {
	if !p.ended() {
		p.claim, err = r.secrets.Claim(ctx, p.job)
		return err
	}
	if err := r.secrets.Release(ctx, p.job); err != nil || !r.options.WatchSecrets { // the poll forgets by itself
		return err
	}
	for _, name := range p.job.Spec.PullSecrets {
		r.secrets.Touched(types.NamespacedName{Namespace: p.job.Namespace, Name: name})
	}
	return nil
}
