package native_test

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// judgePod: an image changes once for a template, while enough other pods serve, and pods are in one ReplicaSet.
func (w *world) judgePod(before, after *corev1.Pod) {
	if before == nil {
		w.seen[after.UID] = &born{templates: w.known}
		owners := map[string]bool{metav1.GetControllerOf(after).Name: true}
		for _, pod := range w.pods {
			if pod.DeletionTimestamp == nil {
				owners[metav1.GetControllerOf(pod).Name] = true
			}
		}
		if len(owners) > 1 && !w.rolls {
			w.breaks("pods are in %d ReplicaSets", len(owners))
		}
		return
	}
	if before.Spec.Containers[0].Image == after.Spec.Containers[0].Image {
		return
	}
	w.inPlace++
	at := w.seen[after.UID]
	if at.images++; at.images > w.templates-at.templates+1 {
		w.breaks("%s: image %d in %d templates", after.Name, at.images, w.templates-at.templates+1)
	}
	up := 0
	for _, pod := range w.pods {
		if serves(pod) {
			up++
		}
	}
	if least := int(w.observed) - 1; serves(before) && up-1 < least {
		w.breaks("%s leaves service, and only %d of at least %d others serve", after.Name, up-1, least)
	}
}

func serves(pod *corev1.Pod) bool {
	up, _ := scale.Available(pod, 0, pod.CreationTimestamp.Time)
	return up && pod.DeletionTimestamp == nil && pod.Annotations[kruise.PendingRevisionKey] == ""
}

// judgeSet: a ReplicaSet with pods gets another template when all of them run it, and not before.
func (w *world) judgeSet(before, after *appsv1.ReplicaSet) {
	if before == nil || *after.Spec.Replicas == 0 ||
		has(&corev1.Pod{Spec: before.Spec.Template.Spec}, &after.Spec.Template) {
		return
	}
	n := int32(0)
	for _, pod := range w.pods {
		if !metav1.IsControlledBy(pod, after) || pod.DeletionTimestamp != nil {
			continue
		}
		if n++; !has(pod, &after.Spec.Template) || !serves(pod) {
			w.breaks("%s has the template, and %s not", after.Name, pod.Name)
		}
	}
	if n != *after.Spec.Replicas {
		w.breaks("%s has the template, and %d pods are missing", after.Name, *after.Spec.Replicas-n)
	}
}

// judgeStatus: status.updatedReplicas is never ahead of the pods.
func (w *world) judgeStatus(d *appsv1.Deployment) {
	n := int32(0)
	for _, pod := range w.pods {
		if has(pod, &d.Spec.Template) {
			n++
		}
	}
	if s := d.Status; s.ObservedGeneration == d.Generation && s.UpdatedReplicas > n {
		w.breaks("updatedReplicas is %d of %s, and %d pods run it", s.UpdatedReplicas,
			d.Spec.Template.Spec.Containers[0].Image, n)
	}
}

// has reports whether a pod has what a user changes in a template.
func has(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	return pod.Spec.Containers[0].Image == t.Spec.Containers[0].Image &&
		slices.Equal(pod.Spec.Containers[0].Env, t.Spec.Containers[0].Env)
}
