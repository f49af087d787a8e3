package sidecarsets

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func isNative(c *appsv1beta1.SidecarContainer) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// checkSidecarContainers validates the fields that containers of a set have beyond those of a pod; of init containers
// only some, as the reference does.
func checkSidecarContainers(spec *appsv1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	if len(spec.Containers)+len(spec.InitContainers) == 0 {
		return field.ErrorList{field.Required(at, "a container or an init container")}
	}
	var faults field.ErrorList
	for i := range spec.InitContainers {
		c, here := &spec.InitContainers[i], at.Child("initContainers").Index(i)
		if c.ResourcesPolicy != nil && !isNative(c) {
			faults = append(faults,
				field.Invalid(here.Child("resourcesPolicy"), c.Name, "an init container needs it only with restartPolicy Always"))
		}
		faults = append(faults, checkSidecarResources(c, here)...)
	}
	for i := range spec.Containers {
		c, here := &spec.Containers[i], at.Child("containers").Index(i)
		faults = append(faults, checkSidecarPolicies(c, here)...)
		for j := range c.TransferEnv {
			faults = append(faults, checkTransferSource(c.TransferEnv[j].SourceContainerNameFrom,
				here.Child("transferEnv").Index(j).Child("sourceContainerNameFrom"))...)
		}
		faults = append(faults, checkSidecarResources(c, here)...)
	}
	return append(faults, checkSidecarNames(spec, at)...)
}

func checkSidecarPolicies(c *appsv1beta1.SidecarContainer, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	before, after := appsv1beta1.BeforeAppContainerType, appsv1beta1.AfterAppContainerType
	if p := c.PodInjectPolicy; p != "" && p != before && p != after {
		faults = append(faults,
			field.NotSupported(at.Child("podInjectPolicy"), p, []appsv1beta1.PodInjectPolicyType{before, after}))
	}
	enabled, disabled := appsv1beta1.ShareVolumePolicyEnabled, appsv1beta1.ShareVolumePolicyDisabled
	if t := c.ShareVolumePolicy.Type; t != "" && t != enabled && t != disabled {
		faults = append(faults,
			field.NotSupported(at.Child("shareVolumePolicy", "type"), t, []appsv1beta1.ShareVolumePolicyType{enabled, disabled}))
	}
	return faults
}

// checkTransferSource accepts a label or an annotation by its key.
func checkTransferSource(from *appsv1beta1.SourceContainerNameSource, at *field.Path) field.ErrorList {
	if from == nil || from.FieldRef == nil {
		return nil
	}
	ref, at := from.FieldRef, at.Child("fieldRef")
	var faults field.ErrorList
	if v := ref.APIVersion; v != "" && v != "v1" {
		faults = append(faults, field.NotSupported(at.Child("apiVersion"), v, []string{"v1"}))
	}
	here := at.Child("fieldPath")
	if ref.FieldPath == "" {
		return append(faults, field.Required(here, ""))
	}
	inside, closed := strings.CutSuffix(ref.FieldPath, "']")
	label, isLabel := strings.CutPrefix(inside, "metadata.labels['")
	annotation, isAnnotation := strings.CutPrefix(inside, "metadata.annotations['")
	key := label
	if isAnnotation {
		key = strings.ToLower(annotation)
	}
	if !closed || !isLabel && !isAnnotation {
		return append(faults,
			field.Invalid(here, ref.FieldPath, "must be metadata.labels['KEY'] or metadata.annotations['KEY']"))
	}
	for _, wrong := range utilvalidation.IsQualifiedName(key) {
		faults = append(faults, field.Invalid(here, ref.FieldPath, wrong))
	}
	return faults
}

func checkSidecarResources(c *appsv1beta1.SidecarContainer, at *field.Path) field.ErrorList {
	if c.ResourcesPolicy == nil {
		return nil
	}
	at = at.Child("resourcesPolicy")
	if len(c.Resources.Limits)+len(c.Resources.Requests) > 0 {
		return field.ErrorList{field.Forbidden(at, "the container has resources of its own")}
	}
	return sidecar.CheckResources(c.ResourcesPolicy, at)
}

// checkSidecarNames validates the names that containers have in pods, where a hot upgrade makes two of one. Duplicate
// names in the set are rejected by the API server.
func checkSidecarNames(spec *appsv1beta1.SidecarSetSpec, at *field.Path) field.ErrorList {
	var faults field.ErrorList
	declared := map[string]bool{}
	each(spec, at, func(c *appsv1beta1.SidecarContainer, _ bool, _ *field.Path) { declared[c.Name] = true })
	each(spec, at, func(c *appsv1beta1.SidecarContainer, init bool, here *field.Path) {
		inPod := sidecar.ContainerNames(c, init)
		if len(inPod) == 1 {
			return
		}
		if c.UpgradeStrategy.HotUpgradeEmptyImage == "" {
			faults = append(faults, field.Required(here.Child("upgradeStrategy", "hotUpgradeEmptyImage"),
				"the image of the container that is not at work; no pod could be created"))
		}
		for _, name := range inPod {
			if declared[name] {
				faults = append(faults,
					field.Duplicate(here.Child("name"), fmt.Sprintf("%s, which is in pods for hot upgrades of %s", name, c.Name)))
			}
			for _, wrong := range utilvalidation.IsDNS1123Label(name) {
				faults = append(faults,
					field.Invalid(here.Child("name"), c.Name, fmt.Sprintf("becomes %s in pods: %s", name, wrong)))
			}
		}
	})
	return faults
}

// each calls visit with all containers of a set.
func each(
	spec *appsv1beta1.SidecarSetSpec, at *field.Path,
	visit func(c *appsv1beta1.SidecarContainer, init bool, at *field.Path),
) {
	for i := range spec.InitContainers {
		visit(&spec.InitContainers[i], true, at.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		visit(&spec.Containers[i], false, at.Child("containers").Index(i))
	}
}
