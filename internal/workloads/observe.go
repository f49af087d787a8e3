package workloads

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload"
	"github.com/kruisekit/kruisekit/write"
)

// Observation is what a pass of any workload looks at. Objects in it may be the cache's and are only read.
type Observation struct {
	Observed

	// Object is the workload with its defaults.
	Object client.Object
	// Kind is the kind of the workload.
	Kind     schema.GroupVersionKind
	Selector labels.Selector
	Now      time.Time
	// Invalid is why nothing can be done with the spec, Reported the errors of the spec and has a safe reading.
	Invalid, Reported error
	// Orphans are pods without a controller that the workload adopts.
	Orphans []*corev1.Pod
	// OrphanRevisions are those without a controller that the workload adopts. They are among the Revisions.
	OrphanRevisions []*appsv1.ControllerRevision
	// Taken are the names of pods that the workload does not control, where it adopts any.
	Taken map[string]bool
	Known Known

	rejected rejections
	// recorded is the write of takeOver.
	recorded []*write.Write
}

// Read reads a workload, with its defaults; nil where the workload is gone. check returns what of the spec cannot be
// used at all, and what has a safe reading. An observation with Invalid is as complete as it gets.
func Read[T any, P interface {
	*T
	client.Object
	Default()
}](
	ctx context.Context, k *Kit, name types.NamespacedName, check func(P) (unusable, reported error),
) (P, *Observation, error) {
	read, malformed, err := stored.Read[T](ctx, k.Cached, k.options.Kind, name)
	if apierrors.IsNotFound(err) {
		k.forget(name)
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	object := P(read)
	o := &Observation{Object: object, Kind: k.options.Kind, Now: k.Now(), Invalid: malformed, Known: k.memory.Recall(name)}
	if malformed == nil {
		object.Default()
		o.Invalid, o.Reported = check(object)
	}
	return object, o, nil
}

// Observe reads the dependents of a workload, and the orphans.
func (k *Kit) Observe(ctx context.Context, o *Observation, selector *metav1.LabelSelector) error {
	var err error
	if o.Selector, err = metav1.LabelSelectorAsSelector(selector); err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	selects := o.Selector
	if o.IsDeleted() {
		selects = labels.Everything() // no pod of a workload that is deleted is released
	}
	observed, err := k.Dependents.Observe(ctx, o.Object, selects)
	if err != nil {
		return err
	}
	o.Observed = *observed
	o.rejected = o.Known.rejected.next(o.Object.GetGeneration(), o.Inactive, o.Now)
	if o.IsDeleted() || k.options.Stem == nil {
		return nil
	}
	return k.observeOrphans(ctx, o)
}

// observeOrphans finds what to adopt. An adoption follows a live read of the workload: the cache may show a workload
// that is gone, and whose pods were left to another one of its name.
func (k *Kit) observeOrphans(ctx context.Context, o *Observation) error {
	orphans := func(of string) []client.ListOption {
		return append(owned.Orphans(o.Object.GetNamespace(), o.Kind.Kind, of), client.UnsafeDisableDeepCopy)
	}
	var pods corev1.PodList
	if err := k.Client.List(ctx, &pods, orphans(k.cut(o.Object.GetName()))...); err != nil {
		return fmt.Errorf("read orphans: %w", err)
	}
	var revisions appsv1.ControllerRevisionList
	if err := k.Client.List(ctx, &revisions, orphans(o.Object.GetName())...); err != nil {
		return fmt.Errorf("read orphans: %w", err)
	}
	o.Taken = map[string]bool{}
	for _, pod := range o.Unselected {
		o.Taken[pod.Name] = true
	}
	own := identities(o.AllPods())
	for _, pod := range stored.Pointers(pods.Items) {
		if own[pod.UID] {
			continue // a write of ours that the cache does not show
		}
		o.Taken[pod.Name] = true
		if o.adopts(pod) {
			o.Orphans = append(o.Orphans, pod)
		}
	}
	known := identities(o.Revisions)
	for _, rev := range stored.Pointers(revisions.Items) {
		if !known[rev.UID] && o.adopts(rev) {
			o.OrphanRevisions = append(o.OrphanRevisions, rev)
		}
	}
	if len(o.Orphans)+len(o.OrphanRevisions) == 0 {
		return nil
	}
	live, err := stored.Metadata(ctx, k.Live, o.Kind, o.Key())
	if err != nil {
		return err
	}
	if live == nil || live.UID != o.Object.GetUID() || live.DeletionTimestamp != nil {
		o.Orphans, o.OrphanRevisions = nil, nil
	}
	o.Revisions = append(o.Revisions, revision.Complete(o.OrphanRevisions)...)
	revision.Sort(o.Revisions)
	return nil
}

func identities[T client.Object](objects []T) map[types.UID]bool {
	all := make(map[types.UID]bool, len(objects))
	for _, object := range objects {
		all[object.GetUID()] = true
	}
	return all
}

func (o *Observation) adopts(object client.Object) bool {
	return object.GetDeletionTimestamp() == nil && o.Selector.Matches(labels.Set(object.GetLabels())) &&
		metav1.GetControllerOfNoCopy(object) == nil
}

// Ownership returns the writes that release pods that the selector does not match any more, and that adopt orphans. Nil
// for a workload that is deleted.
func (o *Observation) Ownership() []write.Write {
	if o.IsDeleted() {
		return nil
	}
	var writes []write.Write
	for _, pod := range o.Unselected {
		writes = append(writes, owned.Release(pod, o.Object.GetUID()))
	}
	for _, pod := range o.Orphans {
		writes = append(writes, o.adopt(pod))
	}
	return writes
}

func (o *Observation) adopt(object write.Object) write.Write {
	ref := o.ControllerRef()
	return owned.Refer(object, nil, &ref)
}

// Key is the name under which writes are recorded.
func (o *Observation) Key() types.NamespacedName { return client.ObjectKeyFromObject(o.Object) }

// IsDeleted reports whether the workload is being deleted. Its pods are then the garbage collector's.
func (o *Observation) IsDeleted() bool { return o.Object.GetDeletionTimestamp() != nil }

// ControllerRef is the reference of what the workload controls.
func (o *Observation) ControllerRef() metav1.OwnerReference {
	return *metav1.NewControllerRef(o.Object, o.Kind)
}

// NewPod returns a pod of the workload with these labels of its own.
func (o *Observation) NewPod(template *corev1.PodTemplateSpec, name string, own labels.Set) *corev1.Pod {
	pod := workload.NewPod(template, workload.OwnedBy(o.Object, o.Kind, own), name)
	pod.GenerateName = o.Object.GetName() + "-"
	return pod
}

// SelectorMismatch is why a revision cannot be used whose pods have these labels: they would not be the workload's,
// which would release them and create others, without end.
func (o *Observation) SelectorMismatch(of labels.Set, name string) error {
	if o.Selector.Matches(of) {
		return nil
	}
	return fmt.Errorf("spec.selector does not match the labels of pods of the template (revision %s)", name)
}

// Steps are the parts of a reconcile that a kind has. P is its plan, which embeds a Plan.
type Steps[P interface{ base() *Plan }] struct {
	// Plan plans a pass. It may be called again with more pods.
	Plan func() (P, error)
	// Failed returns the status of a workload whose pass fails before anything is known of the pods.
	Failed func(why error) Report
	// Parts returns the parts of the pass.
	Parts func(P) Parts
	// Begin and End are called before and after a pass; nil for no call.
	Begin, End func(P)
}

// Reconcile brings a workload a step closer to what it asks for. A workload that is invalid is left as it is until it
// changes.
func Reconcile[P interface{ base() *Plan }](
	ctx context.Context, k *Kit, o *Observation, of Steps[P],
) (ctrl.Result, error) {
	if o.Invalid != nil {
		return ctrl.Result{}, k.giveUp(ctx, o, of.Failed(o.Invalid), o.Invalid)
	}
	request := ctrl.Request{NamespacedName: o.Key()}
	p, recheckAfter, err := verified(ctx, k, o, of.Plan)
	if err != nil || recheckAfter > 0 {
		return k.Result(request, recheckAfter, err)
	}
	if of.Begin != nil {
		of.Begin(p)
	}
	err = k.run(ctx, o, p.base(), of.Parts(p))
	if p.base().Store.Err() != nil {
		return ctrl.Result{}, k.giveUp(ctx, o, of.Failed(err), err)
	}
	if of.End != nil {
		of.End(p)
	}
	return k.finish(request, p.base(), err)
}

// verified returns what plan plans, once the cache is known to show what the plan relies on. Each read past the cache
// comes once for a workload, and only where the plan would do harm without: an earlier process, or an earlier leader,
// may have created pods a moment ago, and the first list of the workloads may be older than that of the pods.
// recheckAfter is zero for a plan to execute. Otherwise the cache shows an older workload: nothing is written, and the
// next pass comes after that time.
func verified[P interface{ base() *Plan }](
	ctx context.Context, k *Kit, o *Observation, plan func() (P, error),
) (p P, recheckAfter time.Duration, err error) {
	if p, err = plan(); err != nil {
		return p, 0, err
	}
	if needsPods := p.base().NeedsPods && p.base().Runs(o); needsPods && o.Known.verified != o.Object.GetUID() {
		if err := k.addMissing(ctx, o); err != nil {
			return p, 0, err
		}
		if p, err = plan(); err != nil {
			return p, 0, err
		}
	}
	if k.confirmed.Has(o.Object) || !p.base().needsObject(o) {
		return p, 0, nil
	}
	recheckAfter, err = k.confirmed.Confirm(ctx, k.Live, o.Kind, o.Object)
	return p, recheckAfter, err
}

// addMissing reads the pods past the cache, and adds those that the cache lacks.
func (k *Kit) addMissing(ctx context.Context, o *Observation) error {
	missing, err := k.Missing(ctx, o.Object, o.Selector, o.Pods)
	if err != nil {
		return err
	}
	o.Add(o.Selector, missing...)
	uid := o.Object.GetUID()
	o.Known.verified = uid
	k.memory.Note(o.Key(), func(known *Known) { known.verified = uid })
	return nil
}

// needsObject reports whether the pass does harm where the cache shows an older workload: the user may have scaled out,
// or gone on to the revision of the pods, since.
func (p *Plan) needsObject(o *Observation) bool {
	return p.Runs(o) && (p.NeedsObject || p.Pass.Disrupts())
}

// base returns the plan that the plan of a kind embeds.
func (p *Plan) base() *Plan { return p }
