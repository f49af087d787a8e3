package imagepulljob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// snapshot is what one pass looks at. Objects in it may be the cache's and are only read.
type snapshot struct {
	// job with its defaults.
	job *v1beta1.ImagePullJob
	// unfit says why nothing can be done with the spec.
	unfit error
	now   time.Time
	// nodes that are selected, in the order in which they pull.
	nodes []*v1beta1.NodeImage
}

// key is the name under which writes are recorded.
func (s *snapshot) key() types.NamespacedName { return client.ObjectKeyFromObject(s.job) }

// ended says that the job asks for nothing any more.
func (s *snapshot) ended() bool {
	return s.job.DeletionTimestamp != nil || s.job.Status.CompletionTime != nil
}

// newborn is the age at which a job that selects no node is taken at its word. Until then nodes and pods that were there before it
// may still be on their way: they come from other caches, and a job that is over does not look again.
const newborn = 2 * time.Second

// early is how long to wait for them.
func (s *snapshot) early() time.Duration {
	age := s.now.Sub(s.job.CreationTimestamp.Time)
	if len(s.nodes) > 0 || s.job.Status.StartTime != nil || age < -newborn { // or clocks differ
		return 0
	}
	return min(newborn-age, newborn)
}

// observe makes the snapshot; nil when there is nothing to do.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (*snapshot, error) {
	raw := stored.Untyped(gvk())
	if err := r.objects.Get(ctx, name, raw); apierrors.IsNotFound(err) {
		return nil, r.forget(ctx, name)
	} else if err != nil {
		return nil, err
	}
	known, _, err := r.jobWrites.Overlay(ctx, name, []*unstructured.Unstructured{raw})
	if err != nil || len(known) == 0 {
		return nil, err
	}
	job, malformed, err := stored.Decode[v1beta1.ImagePullJob](known[0])
	if err != nil {
		return nil, err
	}
	s := &snapshot{job: job, now: r.options.Now(), unfit: malformed}
	if s.unfit != nil || s.ended() {
		return s, nil //nolint:nilerr // the pass refuses the job
	}
	job.Default()
	if _, err := imagepull.Parse(job.Spec.Image); err != nil {
		s.unfit = fmt.Errorf("spec.image: %w", err)
		return s, nil
	}
	if _, err := imagepull.Select(job, nil, nil); err != nil {
		s.unfit = err
		return s, nil //nolint:nilerr // the pass refuses the job
	}
	s.nodes, err = r.selected(ctx, s)
	return s, err
}

// forget drops what is known of a job that is gone. If it went without being let go, its secrets are still claimed.
func (r *Reconciler) forget(ctx context.Context, name types.NamespacedName) error {
	r.jobWrites.Forget(name)
	r.told.forget(name)
	gone := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	gone.DeletionTimestamp = &metav1.Time{Time: r.options.Now()}
	return r.release(ctx, gone)
}

// selected are the NodeImages of a job, as they are after the own writes, in the order in which they pull.
func (r *Reconciler) selected(ctx context.Context, s *snapshot) ([]*v1beta1.NodeImage, error) {
	pods, err := r.podsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	candidates, err := r.candidates(ctx, s.job, pods)
	if err != nil {
		return nil, err
	}
	nodes := make([]imagepull.Node, len(candidates))
	byName := make(map[string]*v1beta1.NodeImage, len(candidates))
	for i, n := range candidates {
		nodes[i] = imagepull.Node{Name: n.Name, Labels: n.Labels}
		byName[n.Name] = n
	}
	names, err := imagepull.Select(s.job, nodes, pods)
	if err != nil {
		return nil, err
	}
	images := make([]*v1beta1.NodeImage, 0, len(names))
	for _, name := range names {
		known, _, err := r.nodeWrites.Overlay(ctx, types.NamespacedName{Name: name}, []*v1beta1.NodeImage{byName[name]})
		if err != nil {
			return nil, err
		}
		images = append(images, known...)
	}
	return images, nil
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
	err = r.client.List(ctx, &list, client.InNamespace(s.job.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if counts(&list.Items[i]) {
			pods = append(pods, &list.Items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return r.order(ctx, s, pods)
}

// candidates are the NodeImages that the job may select: no more are read than that takes.
func (r *Reconciler) candidates(ctx context.Context, job *v1beta1.ImagePullJob, pods []*corev1.Pod) ([]*v1beta1.NodeImage, error) {
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
	var nodes []*v1beta1.NodeImage
	for _, name := range slices.Compact(names) {
		node, err := r.nodeNamed(ctx, name)
		if err != nil {
			return nil, err
		}
		if node != nil {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// logged tells of an error where no pass is there to return it.
func logged(ctx context.Context, err error, what string) {
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, what)
	}
}
