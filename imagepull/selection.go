package imagepull

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// Node is what a selector looks at. A NodeImage has the name and the labels of its node.
type Node struct {
	Name   string
	Labels map[string]string
}

// Select names the nodes that a job is for, each once, in the order in which they shall pull. With a podSelector that
// is the order of the pods, so that a caller who sorts them as their workload updates them has the nodes pull in that
// order; else it is by name. Pods of other namespaces, and those that have ended, are being deleted or have no node, do
// not count; nor do pods on nodes that are not among the nodes.
func Select(job *v1beta1.ImagePullJob, nodes []Node, pods []*corev1.Pod) ([]string, error) {
	if job.Spec.PodSelector != nil {
		return selectByPods(job, nodes, pods)
	}
	wanted := func(Node) bool { return true }
	if s := job.Spec.Selector; s != nil && s.Names != nil {
		named := map[string]bool{}
		for _, name := range s.Names {
			named[name] = true
		}
		wanted = func(n Node) bool { return named[n.Name] }
	} else if s != nil {
		selector, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.selector: %w", err)
		}
		wanted = func(n Node) bool { return selector.Matches(labels.Set(n.Labels)) }
	}
	selected := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if wanted(n) {
			selected = append(selected, n.Name)
		}
	}
	slices.SortFunc(selected, strings.Compare)
	return slices.Compact(selected), nil
}

// SelectImages is Select for the NodeImages of nodes.
func SelectImages(
	job *v1beta1.ImagePullJob, images []*v1beta1.NodeImage, pods []*corev1.Pod,
) ([]*v1beta1.NodeImage, error) {
	nodes := make([]Node, len(images))
	byName := make(map[string]*v1beta1.NodeImage, len(images))
	for i, n := range images {
		nodes[i] = Node{Name: n.Name, Labels: n.Labels}
		byName[n.Name] = n
	}
	names, err := Select(job, nodes, pods)
	selected := make([]*v1beta1.NodeImage, len(names))
	for i, name := range names {
		selected[i] = byName[name]
	}
	return selected, err
}

func selectByPods(job *v1beta1.ImagePullJob, nodes []Node, pods []*corev1.Pod) ([]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(&job.Spec.PodSelector.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("spec.podSelector: %w", err)
	}
	free := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		free[n.Name] = true
	}
	selected := []string{}
	for _, p := range pods {
		if p.Namespace != job.Namespace || !active(p) || !free[p.Spec.NodeName] || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		free[p.Spec.NodeName] = false
		selected = append(selected, p.Spec.NodeName)
	}
	return selected, nil
}

func active(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}
