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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/owned"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/revision"
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
	// Invalid is why nothing can be done with the spec, Reported what of the spec is invalid and has a safe reading.
	Invalid, Reported error
	// Orphans are pods without a controller that the workload adopts.
	Orphans []*corev1.Pod
	// OrphanRevisions are those without a controller that the workload adopts. They are among the Revisions.
	OrphanRevisions []*appsv1.ControllerRevision
	// Taken are the names of pods that the workload does not control, where it adopts any.
	Taken map[string]bool
	Known Known

	rejected rejections
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
	o.Revisions = append(o.Revisions, o.OrphanRevisions...)
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

// SelectorMismatch is why a revision cannot be used whose pods have these labels: they would not be the workload's,
// which would release them and create others, without end.
func (o *Observation) SelectorMismatch(of labels.Set, name string) error {
	if o.Selector.Matches(of) {
		return nil
	}
	return fmt.Errorf("spec.selector does not match the labels of pods of the template (revision %s)", name)
}
