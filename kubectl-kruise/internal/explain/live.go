package explain

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/revision"
)

// diffPod returns how a pod becomes as if made from a template. The plugin does not read the revision that the pod was
// made from. Fields that other writers may have added to a pod are no difference, so that diffPod does not see that a
// template has dropped one of these.
//
//   - labels, annotations and finalizers;
//   - tolerations, keys of the node selector, readiness gates and scheduling gates;
//   - a volume, but it sees the mount of the volume;
//   - amounts of resources, and resize policies;
//   - fields that the template leaves unset: affinity, priority and its class, preemption policy, overhead, pull
//     secrets, hostname, subdomain, node name, the service account "default", fields of security contexts, pull
//     policies. The pull policy Always in a pod is no difference, whatever the template has.
//
// All else that only the pod has is a difference, since the template may have dropped it. A value that a webhook
// replaces, such as the registry of an image, is a difference, too.
func diffPod(pod *corev1.Pod, template *corev1.PodTemplateSpec, p inplace.Policy) (*inplace.Change, error) {
	from := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations, Finalizers: pod.Finalizers},
		Spec:       *pod.Spec.DeepCopy(),
	}
	to, _ := revision.Comparable(template, &corev1.PodTemplateSpec{})
	delete(to.Labels, p.Keys.RevisionKey())
	to.Labels, to.Annotations = overlay(pod.Labels, to.Labels), overlay(pod.Annotations, to.Annotations)
	to.Finalizers = append(slices.Clip(pod.Finalizers), lacking(pod.Finalizers, to.Finalizers)...)
	splitSelectors(&from.Spec)
	splitSelectors(&to.Spec)
	complete(&to.Spec, &from.Spec)
	for _, lists := range [][2][]corev1.Container{
		{to.Spec.Containers, from.Spec.Containers}, {to.Spec.InitContainers, from.Spec.InitContainers},
	} {
		for i := range lists[0] {
			named := func(c corev1.Container) bool { return c.Name == lists[0][i].Name }
			if at := slices.IndexFunc(lists[1], named); at >= 0 {
				completeContainer(&lists[0][i], &lists[1][at], p.Keys)
			}
		}
	}
	return inplace.Diff(from, to, p)
}

// overlay is a new map with the entries of one and those of another on top.
func overlay[K comparable, V any](under, over map[K]V) map[K]V {
	merged := make(map[K]V, len(under)+len(over))
	maps.Copy(merged, under)
	maps.Copy(merged, over)
	return merged
}

// complete adds to the spec of a template what others have put in that of a pod.
func complete(s, pod *corev1.PodSpec) {
	unset(&s.NodeName, pod.NodeName)
	unset(&s.Hostname, pod.Hostname)
	unset(&s.Subdomain, pod.Subdomain)
	unset(&s.PriorityClassName, pod.PriorityClassName)
	unset(&s.Priority, pod.Priority)
	unset(&s.PreemptionPolicy, pod.PreemptionPolicy)
	unset(&s.Affinity, pod.Affinity)
	if pod.ServiceAccountName == "default" {
		unset(&s.ServiceAccountName, pod.ServiceAccountName)
		unset(&s.DeprecatedServiceAccount, pod.ServiceAccountName)
	}
	if len(s.Overhead) == 0 {
		s.Overhead = pod.Overhead
	}
	if len(s.ImagePullSecrets) == 0 {
		s.ImagePullSecrets = pod.ImagePullSecrets
	}
	s.NodeSelector = overlay(pod.NodeSelector, s.NodeSelector)
	s.Tolerations = append(slices.Clip(pod.Tolerations), lacking(pod.Tolerations, s.Tolerations)...)
	s.ReadinessGates = merge(pod.ReadinessGates, s.ReadinessGates, func(g corev1.PodReadinessGate) string {
		return string(g.ConditionType)
	})
	s.Volumes = merge(pod.Volumes, s.Volumes, func(v corev1.Volume) string { return v.Name })
	s.SchedulingGates, s.EphemeralContainers = pod.SchedulingGates, pod.EphemeralContainers
	unsetFields(s.SecurityContext, pod.SecurityContext)
	if s.Resources != nil && pod.Resources != nil {
		s.Resources.Limits = overlay(pod.Resources.Limits, s.Resources.Limits)
		s.Resources.Requests = overlay(pod.Resources.Requests, s.Resources.Requests)
	}
}

// completeContainer adds to a container of a template what others have put in that of a pod.
func completeContainer(c, pod *corev1.Container, keys *kruise.Keys) {
	if c.ImagePullPolicy == "" && pod.ImagePullPolicy != corev1.PullNever || pod.ImagePullPolicy == corev1.PullAlways {
		c.ImagePullPolicy = pod.ImagePullPolicy
	}
	c.Resources.Limits = overlay(pod.Resources.Limits, c.Resources.Limits)
	c.Resources.Requests = overlay(pod.Resources.Requests, c.Resources.Requests)
	for _, policy := range pod.ResizePolicy {
		if !slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
			return p.ResourceName == policy.ResourceName
		}) {
			c.ResizePolicy = append(c.ResizePolicy, policy)
		}
	}
	unset(&c.SecurityContext, pod.SecurityContext)
	unsetFields(c.SecurityContext, pod.SecurityContext)
	isToken := func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath }
	if at := slices.IndexFunc(pod.VolumeMounts, isToken); at >= 0 && !slices.ContainsFunc(c.VolumeMounts, isToken) {
		c.VolumeMounts = slices.Insert(c.VolumeMounts, min(at, len(c.VolumeMounts)), pod.VolumeMounts[at])
	}
	isBarrier := func(e corev1.EnvVar) bool { return e.Name == keys.LaunchBarrierEnvName() }
	if at := slices.IndexFunc(pod.Env, isBarrier); at >= 0 && !slices.ContainsFunc(c.Env, isBarrier) {
		c.Env = slices.Insert(c.Env, min(at, len(c.Env)), pod.Env[at])
	}
}

// tokenPath is where admission mounts the token of the service account.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// merge returns the items of a pod, those that the template has as the template has them, and what only the template
// has.
func merge[T any](pod, template []T, name func(T) string) []T {
	at := func(list []T, n string) int { return slices.IndexFunc(list, func(t T) bool { return name(t) == n }) }
	merged := slices.Clone(pod)
	for i := range merged {
		if j := at(template, name(merged[i])); j >= 0 {
			merged[i] = template[j]
		}
	}
	for _, t := range template {
		if at(pod, name(t)) < 0 {
			merged = append(merged, t)
		}
	}
	return merged
}

// splitSelectors removes from selectors what the API server adds for their matchLabelKeys and mismatchLabelKeys. The
// values are those of the labels that the pod was created with.
func splitSelectors(s *corev1.PodSpec) {
	for i := range s.TopologySpreadConstraints {
		c := &s.TopologySpreadConstraints[i]
		splitSelector(c.LabelSelector, c.MatchLabelKeys, nil)
	}
	if s.Affinity == nil {
		return
	}
	var terms []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if a := s.Affinity.PodAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := s.Affinity.PodAntiAffinity; a != nil {
		add(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, term := range terms {
		splitSelector(term.LabelSelector, term.MatchLabelKeys, term.MismatchLabelKeys)
	}
}

func splitSelector(s *metav1.LabelSelector, match, mismatch []string) {
	if s == nil {
		return
	}
	s.MatchExpressions = slices.DeleteFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Operator == metav1.LabelSelectorOpIn && slices.Contains(match, r.Key) ||
			r.Operator == metav1.LabelSelectorOpNotIn && slices.Contains(mismatch, r.Key)
	})
}

// unset sets a field that has no value.
func unset[T comparable](field *T, value T) {
	var none T
	if *field == none {
		*field = value
	}
}

// unsetFields sets the fields without a value of a struct, unless one of the structs is nil.
func unsetFields[T any](into, from *T) {
	if into == nil || from == nil {
		return
	}
	fields, values := reflect.ValueOf(into).Elem(), reflect.ValueOf(from).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			fields.Field(i).Set(values.Field(i))
		}
	}
}

// lacking returns the items of a second list that a first lacks.
func lacking[T any](have, want []T) []T {
	return slices.DeleteFunc(slices.Clone(want), func(w T) bool {
		return slices.ContainsFunc(have, func(h T) bool { return apiequality.Semantic.DeepEqual(h, w) })
	})
}
