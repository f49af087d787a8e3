package sidecar

import (
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// HotUpgradeNames returns the names in the pod of the two containers that a container of a set becomes for hot
// upgrades. The first one works when the pod starts.
func HotUpgradeNames(name string) (first, second string) { return name + "-1", name + "-2" }

// isHot reports whether the pod has two containers for this one. A plain init container ends before an upgrade.
func isHot(sc *appsv1beta1.SidecarContainer, init bool) bool {
	return sc.UpgradeStrategy.UpgradeType == appsv1beta1.SidecarContainerHotUpgrade && (!init || isNative(*sc))
}

// ContainerNames returns the names that a container of a set, or an init container, has in pods: one, or two for hot
// upgrades.
func ContainerNames(sc *appsv1beta1.SidecarContainer, init bool) []string {
	if !isHot(sc, init) {
		return []string{sc.Name}
	}
	first, second := HotUpgradeNames(sc.Name)
	return []string{first, second}
}

// pair returns the two containers of a hot upgrade: the first one works, the second one is empty.
func (in *injector) pair(sc *part, c *corev1.Container) ([]corev1.Container, error) {
	if sc.UpgradeStrategy.HotUpgradeEmptyImage == "" {
		return nil, ErrNoEmptyImage
	}
	first, second := c, c.DeepCopy()
	first.Name, second.Name = HotUpgradeNames(c.Name)
	second.Image = sc.UpgradeStrategy.HotUpgradeEmptyImage
	in.version(first, "1", "0")
	in.version(second, "0", "1")
	in.working[sc.Name] = first.Name
	return []corev1.Container{*first, *second}, nil
}

// version gives a container of a pair its version and that of the other, as environment variables.
func (in *injector) version(c *corev1.Container, own, other string) {
	for _, v := range []struct{ env, key, value string }{
		{kruise.SidecarSetVersionEnvName, kruise.SidecarSetVersionKeyPrefix + c.Name, own},
		{kruise.SidecarSetVersionAltEnvName, kruise.SidecarSetVersionAltKeyPrefix + c.Name, other},
	} {
		annotate(&in.pod.ObjectMeta, v.key, v.value)
		c.Env = append(c.Env, corev1.EnvVar{Name: v.env, ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + v.key + "']"},
		}})
	}
}
