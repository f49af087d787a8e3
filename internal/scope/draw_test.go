package scope_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
)

// draw makes sets, namespaces and pods of a small world, in which they meet.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 1))} }

func one[T any](d draw, of ...T) T { return of[d.IntN(len(of))] }

func (d draw) labels(keys, values []string) map[string]string {
	l := map[string]string{}
	for _, k := range keys {
		if d.IntN(2) == 0 {
			l[k] = one(d, values...)
		}
	}
	if len(l) == 0 && d.IntN(2) == 0 {
		return nil
	}
	return l
}

func (d draw) selector(keys, values []string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	if d.IntN(2) == 0 {
		s.MatchLabels = map[string]string{one(d, keys...): one(d, values...)}
	}
	for range d.IntN(3) {
		e := metav1.LabelSelectorRequirement{
			Key: one(d, keys...),
			Operator: one(d, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
				metav1.LabelSelectorOpDoesNotExist),
		}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			for range 1 + d.IntN(2) {
				e.Values = append(e.Values, one(d, values...))
			}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

// podKeys have one in them that means something else on namespaces.
func podKeys() []string   { return []string{"app", "tier", "example.com/zone", corev1.LabelMetadataName} }
func podValues() []string { return []string{"a", "b", "c", ""} }

// places are the namespaces of the world, with labels.
func places() map[string]map[string]string {
	return map[string]map[string]string{
		"one": {"env": "prod"}, "two": {"env": "test", "team": "x"}, "three": nil,
		"four": {"control-plane": "any", "env": "prod"}, "kruise-system": {"env": "prod"},
	}
}

func (d draw) sets(n int) []*appsv1beta1.SidecarSet {
	sets := make([]*appsv1beta1.SidecarSet, n)
	for i := range sets {
		set := &appsv1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%d", i)}}
		set.Spec.Selector = d.selector(podKeys(), podValues())
		switch d.IntN(4) {
		case 0:
			set.Spec.NamespaceSelector = d.selector([]string{corev1.LabelMetadataName}, []string{"one", "two", "three"})
		case 1:
			set.Spec.NamespaceSelector = d.selector([]string{"env", "team", corev1.LabelMetadataName},
				[]string{"prod", "test", "x", "one"})
		}
		set.Spec.InjectionStrategy.Paused = d.IntN(6) == 0
		if d.IntN(3) == 0 {
			open(set)
		}
		sets[i] = set
	}
	return sets
}

// pod is one of the world.
func (d draw) pod(n int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("pod-%d", n), Labels: d.labels(podKeys(), podValues()),
	}}
	pod.Namespace = one(d, "one", "two", "three", "four", "kruise-system", metav1.NamespaceSystem)
	for i := range 1 + d.IntN(3) {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "image"}
		if d.IntN(4) == 0 {
			c.Env = []corev1.EnvVar{
				{Name: "A", Value: "B"}, {Name: one(d, kruise.ContainerLaunchPriorityEnvName, "OTHER"), Value: "1"},
			}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	switch d.IntN(6) {
	case 0:
		pod.Annotations = map[string]string{kruise.ContainerLaunchPriorityKey: one(d, "Ordered", "ordered", "")}
	case 1:
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: one(d, "apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1", "apps/v1", "apps.kruise.iox/v1"),
			Kind:       one(d, "X", "ReplicaSet"),
			Name:       "x",
			UID:        "u",
			Controller: one(d, ptr.To(true), ptr.To(true), ptr.To(false), nil),
		}}
	}
	if len(pod.OwnerReferences) > 0 && d.IntN(2) == 0 {
		pod.Annotations = map[string]string{kruise.UsingEnhancedLivenessKey: one(d, "true", "true", "false")}
		if d.IntN(3) > 0 {
			pod.Spec.Containers[d.IntN(len(pod.Spec.Containers))].LivenessProbe = &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
			}
		}
	}
	if d.IntN(3) == 0 {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{
			ConditionType: one(d, kruise.KruisePodReadyConditionType, "other"),
		}}
	}
	return pod
}
