package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/kinds"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/target"
	"github.com/kruisekit/kruisekit/workload/native"
)

// request writes into the annotation of a set of apps/v1 what the set asks for after the change: by its annotation, or
// by the label of its namespace. A namespace that may not be read has no label.
func (ch change) request(c target.Command) {
	if !kinds.IsNative(ch.wanted) {
		return
	}
	var namespace metav1.Object
	if _, ok := ch.wanted.GetAnnotations()[native.RolloutKey]; !ok {
		if o, err := c.Get(schema.GroupKind{Kind: "Namespace"}, "", ch.wanted.GetNamespace()); err == nil {
			namespace = o
		}
	}
	text, asks := native.Request(ch.wanted, namespace)
	for _, o := range []*unstructured.Unstructured{ch.live, ch.wanted} {
		if o != nil && asks {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[native.RolloutKey] = text
			o.SetAnnotations(annotations)
		}
	}
}
