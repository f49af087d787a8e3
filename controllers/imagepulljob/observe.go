package imagepulljob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/controllers/imagepulljob/internal/order"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/note"
)

// snapshot is what one reconcile has read. Objects in it may be the cache's and are only read.
type snapshot struct {
	// job with its defaults.
	job *pullJob
	// invalid is why nothing can be done with the spec.
	invalid error
	request imagepull.Request
	// nodes that are selected, in the order in which they pull, as they are after the own writes.
	nodes []*nodeImage
	// more means that further nodes can be asked at once.
	more bool
	// secretNamespace takes no copies of pull secrets, for the reason unplaced; nil where it does.
	secretNamespace string
	unplaced        error
	notes           []note.Note
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.job) }

// ended says that the job asks for nothing any more.
func (s *snapshot) ended() bool {
	return s.job.DeletionTimestamp != nil || s.job.Status.CompletionTime != nil
}

// observe makes the snapshot; nil when there is nothing to do. What it forgets is of a job that is gone.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	latest, err := r.jobs.Latest(ctx, r.api.Cached, name)
	switch {
	case err != nil:
		return nil, err
	case !latest.Cached:
		return r.gone(name), nil
	case latest.Object == nil:
		return nil, nil
	}
	job, malformed, err := stored.Decode[pullJob](latest.Object)
	if err != nil {
		return nil, err
	}
	s := r.snapshotOf(job)
	s.invalid = malformed
	if s.invalid != nil || s.ended() {
		return s, nil //nolint:nilerr // the job is refused
	}
	job.Default()
	if s.invalid = invalid(job); s.invalid != nil {
		return s, nil //nolint:nilerr // as above
	}
	s.nodes, err = r.selected(ctx, s)
	return s, err
}

func (r *Reconciler) snapshotOf(job *pullJob) *snapshot {
	return &snapshot{job: job, secretNamespace: r.options.SecretNamespace, request: imagepull.Request{
		Job: job, Now: r.api.Now(), KeepSeconds: r.options.KeepSeconds, Refused: map[string]error{},
	}}
}

// gone is the snapshot of a job that is gone, whose secrets are still copied.
func (r *Reconciler) gone(name types.NamespacedName) *snapshot {
	r.jobs.Writes.Forget(name)
	r.emitted.Forget(name)
	r.rules.Forget(name)
	job := &pullJob{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	job.DeletionTimestamp = &metav1.Time{Time: r.api.Now()}
	return r.snapshotOf(job)
}

// selected are the NodeImages of a job, as they are after the own writes, in the order in which they pull.
func (r *Reconciler) selected(ctx context.Context, s *snapshot) ([]*nodeImage, error) {
	pods, err := r.podsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	candidates, err := r.candidates(ctx, s.job, pods)
	if err != nil {
		return nil, err
	}
	chosen, err := imagepull.Select(s.job, candidates, pods)
	if err != nil {
		return nil, err
	}
	images := make([]*nodeImage, 0, len(chosen))
	for _, cached := range chosen {
		known, err := r.overlaid(ctx, cached)
		if err != nil {
			return nil, err
		}
		images = append(images, known...)
	}
	return images, nil
}

// overlaid returns a NodeImage of the cache as the own writes left it; none where it is gone.
func (r *Reconciler) overlaid(ctx context.Context, cached *nodeImage) ([]*nodeImage, error) {
	known, _, err := r.nodeImages.Overlay(ctx, types.NamespacedName{Name: cached.Name}, []*nodeImage{cached})
	return known, err
}

// latest returns the NodeImage of a name as the own writes left it; nil where it is gone.
func (r *Reconciler) latest(ctx context.Context, name types.NamespacedName) (*nodeImage, error) {
	cached, err := r.nodeNamed(ctx, name)
	if err != nil || cached == nil {
		return nil, err
	}
	known, err := r.overlaid(ctx, cached)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	return known[0], nil
}

// podsOf a job with a podSelector, in the order in which their workload updates them.
func (r *Reconciler) podsOf(ctx context.Context, s *snapshot) ([]*corev1.Pod, error) {
	if s.job.Spec.PodSelector == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&s.job.Spec.PodSelector.LabelSelector)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	err = r.api.Client.List(ctx, &list, client.InNamespace(s.job.Namespace),
		client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(stored.Pointers(list.Items), func(pod *corev1.Pod) bool { return !imagepull.Counts(pod) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return r.sorted(ctx, s, pods)
}

// candidates are the NodeImages that the job may select: no more are read than that takes.
func (r *Reconciler) candidates(ctx context.Context, job *pullJob, pods []*corev1.Pod) ([]*nodeImage, error) {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Spec.NodeName)
	}
	selector := job.Spec.Selector
	switch {
	case job.Spec.PodSelector != nil:
	case selector != nil && selector.Names != nil:
		names = slices.Clone(selector.Names)
	default:
		return r.listed(ctx, selector)
	}
	slices.Sort(names)
	var nodes []*nodeImage
	for _, name := range slices.Compact(names) {
		node, err := r.nodeNamed(ctx, types.NamespacedName{Name: name})
		if err != nil {
			return nil, err
		}
		if node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// nodeNamed is a NodeImage of the cache; nil where there is none, or where it cannot be decoded: no job selects such a
// one.
func (r *Reconciler) nodeNamed(ctx context.Context, key types.NamespacedName) (*nodeImage, error) {
	raw := stored.Untyped(nodeGVK())
	switch err := r.api.Cached.Get(ctx, key, raw, client.UnsafeDisableDeepCopy); {
	case key.Name == "", apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get NodeImage %s: %w", key.Name, err)
	}
	return r.decoded.Decode(raw), nil
}

// listed are the NodeImages of the cache that a selector picks, or all.
func (r *Reconciler) listed(ctx context.Context, s *v1beta1.ImagePullJobNodeSelector) ([]*nodeImage, error) {
	var options []client.ListOption
	if s != nil {
		selector, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
		if err != nil {
			return nil, err
		}
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	raws, err := stored.List(ctx, r.api.Cached, nodeGVK(), options...)
	nodes := make([]*nodeImage, 0, len(raws))
	for _, raw := range raws {
		if node := r.decoded.Decode(raw); node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes, err
}

// sorted returns the pods in the order in which the workload that owns the job updates them, so that an image comes
// first to where it is needed first. Without such an owner the order stays.
func (r *Reconciler) sorted(ctx context.Context, s *snapshot, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	owner := metav1.GetControllerOfNoCopy(s.job)
	if owner == nil || len(pods) < 2 || owner.Kind != "CloneSet" && owner.Kind != "StatefulSet" {
		return pods, nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != v1beta1.GroupVersion.Group {
		return pods, nil //nolint:nilerr // such an owner is none of ours
	}
	raw := stored.Untyped(v1beta1.GroupVersion.WithKind(owner.Kind))
	switch err := r.api.Cached.Get(ctx, types.NamespacedName{Namespace: s.job.Namespace, Name: owner.Name}, raw); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // it is gone, or not installed
		return pods, nil
	case err != nil:
		return nil, fmt.Errorf("get %s %s: %w", owner.Kind, owner.Name, err)
	case raw.GetUID() != owner.UID:
		return pods, nil
	}
	if set := stored.Whole[v1beta1.CloneSet](raw); set != nil && owner.Kind == "CloneSet" {
		return order.CloneSet(set, pods, s.request.Now), nil
	}
	if set := stored.Whole[v1beta1.StatefulSet](raw); set != nil && owner.Kind == "StatefulSet" {
		return order.StatefulSet(set, pods), nil
	}
	return pods, nil
}
