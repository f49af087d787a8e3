package imagepulljob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/pullsecrets"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/turns"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/binding"
	"github.com/kruisekit/kruisekit/internal/passes"
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
	// nodeImages are the writes of NodeImages, of all jobs: a job sees also what another one has just asked of a node.
	nodeImages *ledger.Ledger[*nodeImage]
	decoded    stored.Memo[nodeImage, *nodeImage]
	// turns are those of the images of NodeImages.
	turns   *turns.Turns
	secrets *pullsecrets.Keeper
	// rules are those of the jobs that label selectors of nodes or pods concern, in one list for each interest.
	rules *watches.Rules[pullJob, *imagepull.Rule]
	// emitted are the notes that were emitted as events.
	emitted passes.Texts[types.NamespacedName]
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
	r := &Reconciler{
		api: api, options: o.withDefaults(), jobs: stored.Kind{GVK: gvk(), Writes: stored.NewWrites(api.Live, api.Now)},
		nodeImages: ledger.New[*nodeImage](api.Live, api.Now), turns: turns.New(), rules: watches.NewRules(imagepull.NewRule),
	}
	r.secrets = pullsecrets.New(api, r.options.SecretNamespace, r.usersOf)
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
	b := r.api.Bind(mgr, "imagepulljob-controller", o).
		For(stored.Untyped(gvk()), builder.WithPredicates(withoutProgress())).
		Watches(stored.Untyped(nodeGVK()), r.nodeEvents()).
		Watches(&corev1.Pod{}, r.podEvents()).
		WatchesRawSource(source.Kind(copies, &corev1.Secret{}, r.copyEvents())).
		WatchesRawSource(source.Func(r.refreshSecrets))
	return b.Complete(r)
}

func gvk() schema.GroupVersionKind     { return v1beta1.GroupVersion.WithKind("ImagePullJob") }
func nodeGVK() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind("NodeImage") }

// Reconcile brings one job a step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := r.observe(ctx, request.NamespacedName)
	switch {
	case err != nil || s == nil:
		return ctrl.Result{}, err
	case s.ended():
		return r.end(ctx, s)
	case s.invalid != nil:
		return ctrl.Result{}, r.refuse(ctx, s)
	case s.wait() > 0:
		return ctrl.Result{RequeueAfter: s.wait()}, nil
	}
	var failed error
	s.request.Secrets, s.notes, failed = r.secrets.Claim(ctx, s.job)
	if failed == nil {
		failed = r.askNodes(ctx, s)
	} else if apierrors.IsNotFound(failed) || write.IsFinal(failed) {
		s.unplaced = failed // it stays until a user mends it
	}
	plan, err := s.plan()
	if err == nil {
		err = r.writeStatus(ctx, s, plan.Status)
	}
	if err == nil {
		r.emit(ctx, s, plan)
	}
	return r.api.Result(request, plan.RequeueAfter, errors.Join(failed, err))
}

// end releases what an ended job holds, and deletes the job when its time has come.
func (r *Reconciler) end(ctx context.Context, s *snapshot) (ctrl.Result, error) {
	if err := r.secrets.Release(ctx, s.key()); err != nil {
		return ctrl.Result{}, err
	}
	writes, after, err := s.ending(r.jobs)
	for _, w := range writes {
		if _, failed := r.api.Send(ctx, s.key(), w, r.jobs); client.IgnoreNotFound(failed) != nil {
			return ctrl.Result{}, fmt.Errorf("%s: %w", w, failed)
		}
	}
	return ctrl.Result{RequeueAfter: after}, err
}

// refuse reports in the status why the job cannot run. Only another spec helps.
func (r *Reconciler) refuse(ctx context.Context, s *snapshot) error {
	status := *s.job.Status.DeepCopy()
	status.Message = "job cannot run: " + s.invalid.Error()
	if status.Message != s.job.Status.Message {
		if err := r.writeStatus(ctx, s, status); err != nil {
			return err
		}
		r.api.Event(s.job, corev1.EventTypeWarning, reasonInvalidSpec, s.invalid.Error())
	}
	return reconcile.TerminalError(s.invalid)
}

// writeStatus writes the status, if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, s *snapshot, status v1beta1.ImagePullJobStatus) error {
	fresh := *s.job
	fresh.Status = status
	_, err := r.api.WriteStatus(ctx, r.jobs, s.job, &fresh, counters(&status))
	return err
}

const (
	// maxRounds of writes in one reconcile. A node that has the image already makes room for the next one at once.
	maxRounds = 32
	// maxRefused is how many NodeImages the API server may refuse before the others are left for later.
	maxRefused = 16
	// maxConflicts of one NodeImage.
	maxConflicts = 5
)

// askNodes asks as many nodes as may pull at once. A refusal stops no other node, and stands for all refusals.
func (r *Reconciler) askNodes(ctx context.Context, s *snapshot) (refusal error) {
	var mu sync.Mutex
	for range maxRounds {
		plan, err := s.request.Review(s.nodes)
		if err != nil || len(plan.Update) == 0 || len(s.request.Refused) > maxRefused {
			return errors.Join(err, refusal)
		}
		err = driver.Each(s.indexes(plan.Update), func(i int) error {
			name := s.nodes[i].Name
			node, err := r.ask(ctx, s.request.For(name), name)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case write.IsFinal(err):
				s.request.Refused[name], refusal = err, err
				return nil
			case err == nil:
				s.nodes[i] = node
			}
			return err
		}).Err()
		s.nodes = slices.DeleteFunc(s.nodes, func(n *nodeImage) bool { return n == nil })
		if err != nil {
			return errors.Join(err, refusal)
		}
	}
	s.more = true
	return refusal
}

// ask adds a job to a NodeImage, and returns the NodeImage as it is then; nil where it is gone. The write tests only
// the image that it changes: daemons write the status of a NodeImage more often than a slow API server answers. After a
// conflict the NodeImage is read again, so that no writer undoes what another one has written.
func (r *Reconciler) ask(ctx context.Context, request imagepull.Request, name string) (*nodeImage, error) {
	key := types.NamespacedName{Name: name}
	node, err := r.latest(ctx, key)
	if err != nil || node == nil {
		return nil, err
	}
	turn := name
	if node.Spec.Images != nil { // else all images are one field
		ref, err := imagepull.Parse(request.Job.Spec.Image)
		if err != nil {
			return nil, err
		}
		turn += " " + ref.Name
	}
	defer r.turns.Take(turn)()
	node, err = r.latest(ctx, key)
	for conflicts := 0; err == nil && node != nil; conflicts++ {
		changed, failed := request.Apply(node)
		if changed == nil && (failed == nil || errors.Is(failed, imagepull.ErrFull)) {
			return node, nil // the next review notes that it is full
		}
		if failed != nil {
			return nil, failed
		}
		answer, failed := r.api.Send(ctx, key, nodeWrite(node, changed, conflicts), r.nodeImages)
		switch {
		case apierrors.IsNotFound(failed):
			return nil, nil
		case write.IsOutdated(failed) && conflicts < maxConflicts:
			node, err = stored.Find[nodeImage](ctx, r.api.Live, key)
		case failed != nil:
			return nil, fmt.Errorf("update NodeImage %s: %w", name, failed)
		default:
			node, _ = answer.(*nodeImage)
			return node, nil
		}
	}
	return nil, err
}
