package sidecarsets

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

// Conflicts returns what a set cannot have because another set has it, and a pod can get both: names of
// containers, volumes of one name that differ, and annotations that are overwritten. No pod gets a canary and its base.
func Conflicts(set *appsv1beta1.SidecarSet, others []*appsv1beta1.SidecarSet) field.ErrorList {
	var faults field.ErrorList
	for _, other := range others {
		if other.Name == set.Name || sidecar.BaseOf(set) == other.Name || sidecar.BaseOf(other) == set.Name {
			continue
		}
		clashes := append(nameClashes(set, other), volumeClashes(set, other)...)
		clashes = append(clashes, annotationClashes(set, other)...)
		if len(clashes) == 0 {
			continue
		}
		// Last, because few sets have anything in common.
		where, meet := meeting(set, other)
		if !meet {
			continue
		}
		for _, c := range clashes {
			faults = append(faults,
				field.Invalid(c.at, c.what, fmt.Sprintf("SidecarSet %s has it too, and both select %s", other.Name, where)))
		}
	}
	return faults
}

// meeting describes a pod that both sets select, if there can be one.
func meeting(a, b *appsv1beta1.SidecarSet) (where string, meet bool) {
	if isEmpty(a.Spec.Selector) || isEmpty(b.Spec.Selector) {
		return "", false
	}
	pod, meet, err := Overlap(a.Spec.Selector, b.Spec.Selector)
	if err != nil || !meet {
		return "", false // an invalid selector is a fault of its own set
	}
	namespace, meet, err := Overlap(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector)
	if err != nil || !meet {
		return "", false
	}
	where = "pods without labels"
	if len(pod) > 0 {
		where = "pods with " + labels.Set(pod).String()
	}
	if len(namespace) > 0 {
		where += " in namespaces with " + labels.Set(namespace).String()
	}
	return where, true
}

// isEmpty reports whether a selector of pods selects none.
func isEmpty(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// clash is what two sets both have.
type clash struct {
	at   *field.Path
	what string
}

// nameClashes returns names that containers or init containers of both sets have in pods, and names in the same list of
// both specs, by which pods record hot upgrades.
func nameClashes(set, other *appsv1beta1.SidecarSet) []clash {
	spec := field.NewPath("spec")
	inPods, written := map[string]bool{}, map[string]bool{}
	key := func(name string, init bool) string { return fmt.Sprintf("%v/%s", init, name) }
	each(&other.Spec, spec, func(c *appsv1beta1.SidecarContainer, init bool, _ *field.Path) {
		written[key(c.Name, init)] = true
		for _, name := range sidecar.ContainerNames(c, init) {
			inPods[name] = true
		}
	})
	var clashes []clash
	each(&set.Spec, spec, func(c *appsv1beta1.SidecarContainer, init bool, at *field.Path) {
		if written[key(c.Name, init)] ||
			slices.ContainsFunc(sidecar.ContainerNames(c, init), func(name string) bool { return inPods[name] }) {
			clashes = append(clashes, clash{at: at.Child("name"), what: c.Name})
		}
	})
	return clashes
}

func volumeClashes(set, other *appsv1beta1.SidecarSet) []clash {
	var clashes []clash
	for i := range set.Spec.Volumes {
		v := &set.Spec.Volumes[i]
		if slices.ContainsFunc(other.Spec.Volumes, func(o corev1.Volume) bool {
			return o.Name == v.Name && !equality.Semantic.DeepEqual(o, *v)
		}) {
			clashes = append(clashes, clash{at: field.NewPath("spec", "volumes").Index(i), what: v.Name})
		}
	}
	return clashes
}

// annotationClashes returns keys that both sets write, and that one of them overwrites.
func annotationClashes(set, other *appsv1beta1.SidecarSet) []clash {
	const overwrite = appsv1beta1.SidecarSetOverwritePatchPolicy
	theirs := map[string]appsv1beta1.SidecarSetPatchPolicyType{}
	for _, p := range other.Spec.PatchPodMetadata {
		for key := range p.Annotations {
			theirs[key] = p.PatchPolicy
		}
	}
	var clashes []clash
	for i, p := range set.Spec.PatchPodMetadata {
		for _, key := range sortedKeys(p.Annotations) {
			policy, both := theirs[key]
			if both && !isRetain(p.PatchPolicy) && !isRetain(policy) && (p.PatchPolicy == overwrite || policy == overwrite) {
				at := field.NewPath("spec", "patchPodMetadata").Index(i).Child("annotations").Key(key)
				clashes = append(clashes, clash{at: at, what: key})
			}
		}
	}
	return clashes
}

func isRetain(p appsv1beta1.SidecarSetPatchPolicyType) bool {
	return p == "" || p == appsv1beta1.SidecarSetRetainPatchPolicy
}
