package sidecarsets

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Warnings returns what is valid, and likely not what the user wants.
func Warnings(set *appsv1beta1.SidecarSet) []string {
	var all []string
	switch t := set.Spec.UpdateStrategy.Type; t {
	case "", appsv1beta1.NotUpdateSidecarSetStrategyType, appsv1beta1.RollingUpdateSidecarSetStrategyType:
	default:
		all = append(all, fmt.Sprintf("spec.updateStrategy.type: %q is unknown, and works as RollingUpdate", t))
		for _, fault := range checkRolling(&set.Spec, field.NewPath("spec", "updateStrategy")) {
			all = append(all, fault.Error())
		}
	}
	if u := set.Spec.UpdateStrategy; u.Type != appsv1beta1.NotUpdateSidecarSetStrategyType && u.MaxUnavailable != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(u.MaxUnavailable, 100, true); err == nil && n == 0 {
			all = append(all, "spec.updateStrategy.maxUnavailable: is 0, so that no pod that is ready is updated")
		}
	}
	if isCanary(set) && baseOf(set) == "" {
		all = append(all, fmt.Sprintf("metadata.annotations: the canary names no base in %s, and takes the place of none",
			appsv1beta1.SidecarSetBaseAnnotation))
	}
	const policy = appsv1beta1.SidecarSetInjectionFailurePolicyAnnotation
	switch p := admissionregistrationv1.FailurePolicyType(set.Annotations[policy]); p {
	case "", admissionregistrationv1.Fail, admissionregistrationv1.Ignore:
	default:
		all = append(all,
			fmt.Sprintf("%s: %q is unknown, and works as Fail", field.NewPath("metadata", "annotations").Key(policy), p))
	}
	if only := set.Spec.Selector; only != nil && excludes(only) &&
		(set.Spec.NamespaceSelector == nil || excludes(set.Spec.NamespaceSelector)) {
		all = append(all, "spec.selector: says only what pods are not, and selects nearly every pod")
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

// excludes reports whether a selector requires no label.
func excludes(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) > 0 &&
		!slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
			return e.Operator != metav1.LabelSelectorOpNotIn && e.Operator != metav1.LabelSelectorOpDoesNotExist
		})
}

// warningsOfParts returns the warnings of containers and of patchPodMetadata.
func warningsOfParts(spec *appsv1beta1.SidecarSetSpec) []string {
	var all []string
	each(spec, field.NewPath("spec"), func(c *appsv1beta1.SidecarContainer, init bool, at *field.Path) {
		if len(sidecar.ContainerNames(c, init)) > 1 && c.Image != "" && c.Image == c.UpgradeStrategy.HotUpgradeEmptyImage {
			all = append(all, fmt.Sprintf("%s: is the hotUpgradeEmptyImage, so that no upgrade to it ends", at.Child("image")))
		}
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
		for _, key := range sortedKeys(p.Annotations) {
			if sidecar.IsRecord(key) {
				all = append(all,
					fmt.Sprintf("spec.patchPodMetadata[%d].annotations[%s]: is what pods record of sets, and not written by them",
						i, key))
			}
		}
	}
	return all
}
