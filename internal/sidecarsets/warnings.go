package sidecarsets

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Spared returns what is wrong with a set whose pods get no containers, because their namespaces are spared:
// API servers send only pods of the namespaces that sent selects. It is empty for other sets.
func Spared(set *appsv1beta1.SidecarSet, sent *metav1.LabelSelector) string {
	const what = "spec.namespaceSelector: selects "
	var spared []string
	for _, name := range sidecar.Namespaces(set) {
		named := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
		if _, found, err := Overlap(named, sent); err == nil && !found {
			spared = append(spared, name)
		}
	}
	if len(spared) > 0 {
		return what + "namespaces whose pods get no containers: " + strings.Join(spared, ", ")
	}
	if set.Spec.NamespaceSelector == nil {
		return ""
	}
	if _, found, err := Overlap(set.Spec.NamespaceSelector, sent); err == nil && !found {
		return what + "only namespaces whose pods get no containers"
	}
	return ""
}
