package revision

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Same reports whether two templates make the same pod: equal once the API server has filled in its defaults and
// rounded amounts.
func Same(a, b *corev1.PodTemplateSpec) bool {
	if apiequality.Semantic.DeepEqual(a, b) {
		return true
	}
	return apiequality.Semantic.DeepEqual(Comparable(a, b))
}

// Comparable returns copies of two templates that differ only where the pods made from them do: the defaults of
// the API server are filled in, amounts are rounded up to thousandths as the API server stores them, and a pull policy
// that is a default is the same in both.
func Comparable(a, b *corev1.PodTemplateSpec) (*corev1.PodTemplateSpec, *corev1.PodTemplateSpec) {
	a, b = a.DeepCopy(), b.DeepCopy()
	a.CreationTimestamp, b.CreationTimestamp = metav1.Time{}, metav1.Time{}
	fillDefaults(&a.Spec)
	fillDefaults(&b.Spec)
	alignPullPolicies(a.Spec.Containers, b.Spec.Containers)
	alignPullPolicies(a.Spec.InitContainers, b.Spec.InitContainers)
	return a, b
}

// SameData reports whether the data of two revisions means the same: the same templates, as SameRoles compares them,
// and all else equal. So a second template beside spec.template counts, whatever its name. Data that holds no template
// is the same only as equal bytes. Layout.Same compares templates at other places.
func SameData(a, b []byte) bool { return (*Layout)(nil).Same(a, b) }

// alignPullPolicies gives a container without a pull policy the one of its counterpart where that is a default:
// the API server's depends on the tag, and the reference's webhook always sets Always.
func alignPullPolicies(a, b []corev1.Container) {
	for i := range a {
		x, y := &a[i], counterpart(b, i, a[i].Name)
		if y == nil {
			continue
		}
		if x.ImagePullPolicy == "" && isDefaultPullPolicy(y) {
			x.ImagePullPolicy = y.ImagePullPolicy
		}
		if y.ImagePullPolicy == "" && isDefaultPullPolicy(x) {
			y.ImagePullPolicy = x.ImagePullPolicy
		}
	}
}

// counterpart finds a container by name, most likely at the same place.
func counterpart(in []corev1.Container, at int, name string) *corev1.Container {
	if at < len(in) && in[at].Name == name {
		return &in[at]
	}
	for i := range in {
		if in[i].Name == name {
			return &in[i]
		}
	}
	return nil
}

func isDefaultPullPolicy(c *corev1.Container) bool {
	if c.ImagePullPolicy == corev1.PullAlways {
		return true
	}
	return c.ImagePullPolicy == corev1.PullIfNotPresent && !latest(c.Image)
}
