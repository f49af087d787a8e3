package uniteddeployment_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
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

// count writes the status of a workload.
func (m *model) count(c *subsets.Child) {
	m.Helper()
	var replicas, ready, updated, updatedReady int32
	content, _, _ := unstructured.NestedSlice(c.Object.Object, "spec", "template", "spec", "containers")
	for _, pod := range m.pods(c.Owns) {
		isUpdated := pod.Spec.Containers[0].Image == content[0].(map[string]any)["image"]
		replicas++
		if isUpdated {
			updated++
		}
		if isReady(pod) {
			ready++
			if isUpdated {
				updatedReady++
			}
		}
	}
	status := map[string]int32{"replicas": replicas, "readyReplicas": ready, "updatedReplicas": updated}
	if c.Kind.Group == v1beta1.GroupVersion.Group {
		status["updatedReadyReplicas"] = updatedReady
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(c.Kind)
	m.get(client.ObjectKeyFromObject(c.Object), o)
	status["observedGeneration"] = int32(c.Object.GetGeneration())
	changed := false
	for field, n := range status {
		if have, _, _ := unstructured.NestedInt64(o.Object, "status", field); have == int64(n) {
			continue
		}
		if changed = true; unstructured.SetNestedField(o.Object, int64(n), "status", field) != nil {
			m.Fatalf("status %v", o.Object["status"])
		}
	}
	if changed {
		m.put(o)
	}
}

// run creates, deletes and replaces pods as the controller of a workload does, without a budget.
func (m *model) run(c *subsets.Child) {
	m.Helper()
	template := &corev1.PodTemplateSpec{}
	content, _, _ := unstructured.NestedMap(c.Object.Object, "spec", "template")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, template); err != nil {
		m.Fatal(err)
	}
	pods, updated := m.pods(c.Owns), int32(0)
	for _, pod := range pods {
		if pod.Spec.Containers[0].Image == template.Spec.Containers[0].Image {
			updated++
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		rank := func(p *corev1.Pod) int {
			if isReady(p) {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	for i, pod := range pods {
		outdated := pod.Spec.Containers[0].Image != template.Spec.Containers[0].Image
		if int32(len(pods)-i) > c.Replicas || outdated && updated < c.Replicas-c.Partition {
			if outdated {
				updated++
			}
			if err := m.Server.Delete(m.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				m.Fatal(err)
			}
		}
	}
	for range c.Replicas - int32(len(m.pods(c.Owns))) {
		m.newPod(c, template)
	}
}

func condition(
	u *v1beta1.UnitedDeployment, conditionType v1beta1.UnitedDeploymentConditionType,
) *v1beta1.UnitedDeploymentCondition {
	for i := range u.Status.Conditions {
		if c := &u.Status.Conditions[i]; c.Type == conditionType {
			return c
		}
	}
	return nil
}
