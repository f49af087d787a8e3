package pub_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1beta1 "github.com/kruisekit/kruisekit/api/policy/v1beta1"
	"github.com/kruisekit/kruisekit/pub"
)

// at is so many seconds after a fixed time.
func at(seconds int) time.Time {
	return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func stamp(seconds int) metav1.Time { return metav1.NewTime(at(seconds)) }

type object = policyv1beta1.PodUnavailableBudget

// newObject is a budget of pods with the label app=web, changed by edits.
func newObject(name string, edits ...func(*object)) *object {
	b := &object{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Generation: 1,
	}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Status.ObservedGeneration = 1
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func maxUnavailable(v string) func(*object) {
	return func(b *object) { b.Spec.MaxUnavailable = amount(v) }
}

func minAvailable(v string) func(*object) {
	return func(b *object) { b.Spec.MinAvailable = amount(v) }
}

func amount(v string) *intstr.IntOrString {
	parsed := intstr.Parse(v)
	return &parsed
}

func targeted(kind, name string) func(*object) {
	return func(b *object) {
		b.Spec.Selector = nil
		b.Spec.TargetReference = &policyv1beta1.TargetReference{APIVersion: "apps/v1", Kind: kind, Name: name}
	}
}

func annotated(key, value string) func(*object) {
	return func(b *object) { b.Annotations = map[string]string{key: value} }
}

// with sets the status that admission looks at.
func with(allowed, desired int32) func(*object) {
	return func(b *object) { b.Status.UnavailableAllowed, b.Status.DesiredAvailable = allowed, desired }
}

func read(b *object) pub.Budget {
	budget, _ := pub.Read(b)
	return budget
}

func newBudget(edits ...func(*object)) pub.Budget { return read(newObject("web", edits...)) }

// newPod is an available pod with the label app=web, changed by edits.
func newPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Image: "web:1", ImageID: "web@sha256:1", ContainerID: "fake://1",
			}},
		},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func unready(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func terminating(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at(0)} }

func image(image string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = image }
}

func label(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels[key] = value }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[key] = value
	}
}

// pods are n pods named web-0, web-1 and so on; of them the first ones are changed by edits, one each.
func pods(n int, edits ...func(*corev1.Pod)) []*corev1.Pod {
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = newPod(fmt.Sprint("web-", i))
		if i < len(edits) {
			edits[i](all[i])
		}
	}
	return all
}

func counts(pods []*corev1.Pod) *pub.Counts { return pub.Budget{}.Count(pods, pub.Policy{}) }

// records are those of pods web-from to web-to, the last one excluded.
func records(from, to, seconds int) map[string]metav1.Time {
	all := map[string]metav1.Time{}
	for i := from; i < to; i++ {
		all[fmt.Sprint("web-", i)] = stamp(seconds)
	}
	return all
}

func equal(a, b any) bool { return apiequality.Semantic.DeepEqual(a, b) }
