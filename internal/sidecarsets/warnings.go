package sidecarsets

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Warnings returns values that the API server accepts and that are unknown.
func Warnings(set *appsv1beta1.SidecarSet) []string {
	var all []string
	switch t := set.Spec.UpdateStrategy.Type; t {
	case "", appsv1beta1.NotUpdateSidecarSetStrategyType, appsv1beta1.RollingUpdateSidecarSetStrategyType:
	default:
		all = append(all, fmt.Sprintf("spec.updateStrategy.type: %q is unknown, and works as RollingUpdate", t))
	}
	const policy = appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation
	switch p := admissionregistrationv1.FailurePolicyType(set.Annotations[policy]); p {
	case "", admissionregistrationv1.Fail, admissionregistrationv1.Ignore:
	default:
		all = append(all,
			fmt.Sprintf("%s: %q is unknown, and works as Fail", field.NewPath("metadata", "annotations").Key(policy), p))
	}
	return append(all, warningsOfParts(&set.Spec)...)
}

// Spared returns what is wrong with a set whose pods get no containers, because their namespaces are spared:
// API servers send only pods of the namespaces that sent selects. It is empty for other sets.
func Spared(set *appsv1beta1.SidecarSet, sent *metav1.LabelSelector) string {
	const what = "spec.namespaceSelector: selects "
	var spared []string
	for _, name := range sidecar.Namespaces(set) {
		named := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
		if _, found, err := OverlapNamespace(named, sent); err == nil && !found {
			spared = append(spared, name)
		}
	}
	if len(spared) > 0 {
		return what + "namespaces whose pods get no containers: " + strings.Join(spared, ", ")
	}
	if set.Spec.NamespaceSelector == nil {
		return ""
	}
	if _, found, err := OverlapNamespace(set.Spec.NamespaceSelector, sent); err == nil && !found {
		return what + "only namespaces whose pods get no containers"
	}
	return ""
}

// warningsOfParts returns the warnings of containers and of patchPodMetadata.
func warningsOfParts(spec *appsv1beta1.SidecarSetSpec) []string {
	var all []string
	each(spec, field.NewPath("spec"), func(c *appsv1beta1.SidecarContainer, _ bool, at *field.Path) {
		if t := c.UpgradeStrategy.UpgradeType; t != "" && !isUpgradeType(t) {
			all = append(all,
				fmt.Sprintf("%s: %q is unknown, and works as ColdUpgrade", at.Child("upgradeStrategy", "upgradeType"), t))
		}
	})
	for i, p := range spec.PatchPodMetadata {
		switch p.PatchPolicy {
		case "", appsv1beta1.SidecarSetRetainPatchPolicy, appsv1beta1.SidecarSetOverwritePatchPolicy,
			appsv1beta1.SidecarSetMergePatchJsonPatchPolicy:
		default:
			all = append(all,
				fmt.Sprintf("spec.patchPodMetadata[%d].patchPolicy: %q is unknown, and writes nothing", i, p.PatchPolicy))
		}
	}
	return all
}
