package runtimeclient

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/internal/passes"
	"github.com/kruisekit/kruisekit/ledger"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/workload"
)

// Workloads makes the passes of package workload for a reconciler of one kind. The reconciler embeds it, and the
// controller watches its Queue:
//
//	type reconciler struct{ *runtimeclient.Workloads }
//
//	func (r *reconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
//		site := &Site{}
//		if err := r.Get(ctx, q.NamespacedName, site); err != nil {
//			return r.Gone(q, err)
//		}
//		seen, err := r.Observe(ctx, site, client.MatchingLabels{"site": site.Name})
//		in, invalid := site.input(seen)
//		if err := errors.Join(err, invalid); err != nil {
//			return reconcile.Result{}, err
//		}
//		pass, err := r.Run(ctx, site, in)
//		if pass == nil {
//			return reconcile.Result{}, err
//		}
//		return r.Result(q, pass, errors.Join(err, r.report(ctx, site, pass)))
//	}
//
// It records the writes of each pass, and its next Observe returns them before the cache does. It keeps what a pass
// leaves to the next one: repeated writes, and when to look again. A new process starts without any of these. Workloads
// is safe for concurrent use, with one Reconcile at a time for each object, as controllers do.
type Workloads struct {
	client.Client // reads from the cache of the manager
	Queue

	live      client.Reader
	options   WorkloadsOptions
	pods      *ledger.Ledger[*corev1.Pod]
	claims    *ledger.Ledger[*corev1.PersistentVolumeClaim]
	revisions *ledger.Ledger[*appsv1.ControllerRevision]
	known     passes.Memory[types.NamespacedName, known]
}

// WorkloadsOptions are those of NewWorkloads. The zero value is of an operator whose pods have no claims.
type WorkloadsOptions struct {
	// Claims has Observe list the PersistentVolumeClaims of a workload.
	Claims bool
	// Recorder emits an event about a workload that is blocked, once until something else blocks it; nil for none.
	Recorder driver.EventRecorder
	// Ledgers record the answers about objects that the reconciler lists itself, as those of Input.Children.
	Ledgers []driver.Recorder
	// Now is the clock; nil for time.Now.
	Now func() time.Time
}

// known is what a pass leaves to the next one of the same object.
type known struct {
	uid     types.UID
	repeats workload.Repeats
	// recheckAfter is when to look again where the cache lacks what was written.
	recheckAfter time.Duration
	// blocked is what blocked the workload.
	blocked note.Note
}

// NewWorkloads returns the Workloads of a reconciler. The client reads from a cache, and live past it.
func NewWorkloads(c client.Client, live client.Reader, o WorkloadsOptions) *Workloads {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the clock of the options
	}
	return &Workloads{
		Client: c, live: live, options: o,
		pods:      ledger.New[*corev1.Pod](live, o.Now),
		claims:    ledger.New[*corev1.PersistentVolumeClaim](live, o.Now),
		revisions: ledger.New[*appsv1.ControllerRevision](live, o.Now),
	}
}

// Observed are the objects that a workload controls.
type Observed struct {
	Pods      []*corev1.Pod
	Claims    []*corev1.PersistentVolumeClaim
	Revisions []*appsv1.ControllerRevision
}

// Observe lists the objects with labels that a workload controls, with what Run has written since. Give pods, claims
// and revisions these labels: workload.OwnedBy takes them.
func (w *Workloads) Observe(ctx context.Context, owner client.Object, of client.MatchingLabels) (Observed, error) {
	pods, later, err := w.pods.List(ctx, w, owner, &corev1.PodList{}, of)
	revisions, again, failed := w.revisions.List(ctx, w, owner, &appsv1.ControllerRevisionList{}, of)
	o, err := Observed{Pods: pods, Revisions: revisions}, errors.Join(err, failed)
	later = passes.Sooner(later, again)
	if w.options.Claims {
		o.Claims, again, failed = w.claims.List(ctx, w, owner, &corev1.PersistentVolumeClaimList{}, of)
		later, err = passes.Sooner(later, again), errors.Join(err, failed)
	}
	w.remember(owner, func(k *known) { k.recheckAfter = later })
	return o, err
}

// Run plans a pass with the time and with what earlier passes have left, and runs it. The pass is nil where there is no
// plan; errors of single writes come with the pass.
func (w *Workloads) Run(ctx context.Context, owner client.Object, in workload.Input) (*workload.Pass, error) {
	key := client.ObjectKeyFromObject(owner)
	if k := w.known.Recall(key); k.uid == owner.GetUID() {
		in.Repeats = k.repeats
	}
	in.Scale.Now = w.options.Now()
	pass, err := workload.Plan(in)
	if err != nil {
		return nil, err
	}
	err = driver.Run(ctx, pass, driver.Options[*workload.Write]{
		Send: Sender(w.Client, w.live), Owner: key, Now: w.options.Now,
		Ledgers: append([]driver.Recorder{w.pods, w.claims, w.revisions}, w.options.Ledgers...),
	})
	w.remember(owner, func(k *known) { k.repeats = pass.Repeats() })
	w.emit(owner, pass.Notes())
	return pass, err
}

// emit emits what blocks a workload, unless it did so in the pass before.
func (w *Workloads) emit(owner client.Object, notes []note.Note) {
	blocked, _ := note.Headline(notes)
	if blocked.Level != note.Blocked {
		blocked = note.Note{}
	}
	var before note.Note
	w.remember(owner, func(k *known) { before, k.blocked = k.blocked, blocked })
	if w.options.Recorder != nil && blocked != before && blocked != (note.Note{}) {
		driver.EmitNotes(w.options.Recorder, owner, blocked)
	}
}

// Result returns what a reconciler returns after a pass. The object is reconciled again when the pass asks for it, also
// where the error of another object has a longer back-off: see Queue.Result.
func (w *Workloads) Result(q reconcile.Request, pass *workload.Pass, err error) (reconcile.Result, error) {
	return w.Queue.Result(q, passes.Sooner(pass.RequeueAfter(), w.known.Recall(q.NamespacedName).recheckAfter), err)
}

// Gone returns what a reconciler returns for an object that does not exist, or whose deletion has begun, and forgets
// the object. err is the error of Get; NotFound is no error.
func (w *Workloads) Gone(q reconcile.Request, err error) (reconcile.Result, error) {
	if err = client.IgnoreNotFound(err); err != nil {
		return reconcile.Result{}, err
	}
	w.pods.Forget(q.NamespacedName)
	w.claims.Forget(q.NamespacedName)
	w.revisions.Forget(q.NamespacedName)
	w.known.Forget(q.NamespacedName)
	return reconcile.Result{}, nil
}

// PatchStatus writes the status of an object where it differs from that of an earlier copy. Options may demand that the
// object has not changed since.
func (w *Workloads) PatchStatus(
	ctx context.Context, before, object client.Object, o ...client.MergeFromOption,
) error {
	changed, err := client.MergeFrom(before).Data(object)
	if err != nil || string(changed) == "{}" {
		return err
	}
	return w.Status().Patch(ctx, object, client.MergeFromWithOptions(before, o...))
}

func (w *Workloads) remember(owner client.Object, change func(*known)) {
	w.known.Note(client.ObjectKeyFromObject(owner), func(k *known) {
		if k.uid != owner.GetUID() {
			*k = known{uid: owner.GetUID()}
		}
		change(k)
	})
}
