package imagepull

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Select returns the NodeImages that a job is for, each once, in the order in which they shall pull. With a podSelector
// that is the order of the pods, so that a caller who sorts them as their workload updates them has the nodes pull in
// that order; else it is by name. Pods of other namespaces, and those that have ended, are being deleted or have no
// node, do not count; nor do pods on nodes that are not among the NodeImages.
func Select(job *v1beta1.ImagePullJob, images []*v1beta1.NodeImage, pods []*corev1.Pod) ([]*v1beta1.NodeImage, error) {
	if job.Spec.PodSelector != nil {
		return selectByPods(job, images, pods)
	}
	wanted := func(*v1beta1.NodeImage) bool { return true }
	if s := job.Spec.Selector; s != nil && s.Names != nil {
		names := sets.New(s.Names...)
		wanted = func(n *v1beta1.NodeImage) bool { return names.Has(n.Name) }
	} else if s != nil {
		selector, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.selector: %w", err)
		}
		wanted = func(n *v1beta1.NodeImage) bool { return selector.Matches(labels.Set(n.Labels)) }
	}
	selected := slices.DeleteFunc(slices.Clone(images), func(n *v1beta1.NodeImage) bool { return !wanted(n) })
	slices.SortFunc(selected, func(a, b *v1beta1.NodeImage) int { return strings.Compare(a.Name, b.Name) })
	return selected, nil
}

func selectByPods(
	job *v1beta1.ImagePullJob, images []*v1beta1.NodeImage, pods []*corev1.Pod,
) ([]*v1beta1.NodeImage, error) {
	selector, err := metav1.LabelSelectorAsSelector(&job.Spec.PodSelector.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.podSelector: %w", err)
	}
	free := make(map[string]*v1beta1.NodeImage, len(images))
	for _, n := range images {
		free[n.Name] = n
	}
	var selected []*v1beta1.NodeImage
	for _, p := range pods {
		n := free[p.Spec.NodeName]
		if n == nil || p.Namespace != job.Namespace || !active(p) || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		delete(free, n.Name)
		selected = append(selected, n)
	}
	return selected, nil
}

func active(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}
