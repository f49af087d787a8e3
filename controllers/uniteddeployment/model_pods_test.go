package uniteddeployment_test

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/controllers/uniteddeployment/internal/subsets"
)

func (m *model) pods(filter func(*corev1.Pod) bool) []*corev1.Pod {
	m.Helper()
	var list corev1.PodList
	if err := m.Server.List(m.Context(), &list, client.InNamespace("shop")); err != nil {
		m.Fatal(err)
	}
	var all []*corev1.Pod
	for i := range list.Items {
		if filter(&list.Items[i]) {
			all = append(all, &list.Items[i])
		}
	}
	return all
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (m *model) newPod(c *subsets.Child, template *corev1.PodTemplateSpec) {
	m.Helper()
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.GenerateName = "shop", c.Object.GetName()+"-"
	ref := *metav1.NewControllerRef(c.Object, c.Kind)
	if c.Kind.Kind == "Deployment" {
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "1a"
		ref.Kind, ref.Name, ref.UID = "ReplicaSet", c.Object.GetName()+"-1a", "replicaset"
	}
	pod.OwnerReferences = []metav1.OwnerReference{ref}
	if err := m.Server.Create(m.Context(), pod); err != nil {
		m.Fatal(err)
	}
}

// schedule finds nodes for pods, and makes them ready.
func (m *model) schedule() {
	m.Helper()
	used := map[string]int{}
	for _, pod := range m.pods(func(p *corev1.Pod) bool { return p.Spec.NodeName != "" }) {
		used[pod.Spec.NodeName]++
	}
	for _, pod := range m.pods(func(p *corev1.Pod) bool { return p.Spec.NodeName == "" || !isReady(p) }) {
		where := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].
			MatchExpressions[0].Values[0]
		room, limited := m.room[where]
		switch {
		case limited && used[where] >= room && pod.Spec.NodeName == "":
			setCondition(pod, corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, m.Clock)
		default:
			used[where]++
			pod.Spec.NodeName, pod.Status.Phase = where, corev1.PodRunning
			setCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", m.Clock)
			if !strings.HasSuffix(pod.Spec.Containers[0].Image, "broken") {
				setCondition(pod, corev1.PodReady, corev1.ConditionTrue, "", m.Clock)
			}
		}
		m.put(pod)
	}
}

func setCondition(
	pod *corev1.Pod, t corev1.PodConditionType, status corev1.ConditionStatus, reason string, now time.Time,
) {
	c := corev1.PodCondition{
		Type: t, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
	for i := range pod.Status.Conditions {
		if have := &pod.Status.Conditions[i]; have.Type == t {
			if have.Status != status {
				*have = c
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}
