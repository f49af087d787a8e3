package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/revision"
)

// Selector returns the selector of the pods of an object, as a list request takes it.
func Selector(o *unstructured.Unstructured) (string, error) {
	if kinds.Is(o, kinds.BroadcastJob) {
		return kruise.BroadcastJobNameKey + "=" + o.GetName(), nil
	}
	fields, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if err != nil || !found {
		return "", fmt.Errorf("%s %s has no selector of pods", o.GetKind(), o.GetName())
	}
	read, err := kinds.Read[metav1.LabelSelector](&unstructured.Unstructured{Object: fields})
	if err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(read)
	if err != nil {
		return "", fmt.Errorf("read the selector of %s: %w", o.GetName(), err)
	}
	return selector.String(), nil
}

// Of lists the pods of an object by name: those that it controls, or those that it selects where other objects control
// them.
func Of(c target.Command, o target.Object) ([]*corev1.Pod, error) {
	selector, err := Selector(o.Unstructured)
	if err != nil {
		return nil, err
	}
	clients, err := c.Factory.KubernetesClientSet()
	if err != nil {
		return nil, err
	}
	list, err := clients.CoreV1().Pods(o.GetNamespace()).List(c.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", o.GetName(), err)
	}
	var all []*corev1.Pod
	if indirect(o.Unstructured) {
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	} else {
		all = revision.ControlledBy(o.Unstructured, list.Items)
	}
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all, nil
}

// indirect reports whether other objects control the pods of an object.
func indirect(o *unstructured.Unstructured) bool {
	kind := o.GetKind()
	return kind == kinds.UnitedDeployment || kind == kinds.SidecarSet || kind == "Deployment"
}
