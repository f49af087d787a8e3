package lifecycle_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/pub"
	"github.com/kruisekit/kruisekit/lifecycle"
)

func ExampleSettle() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pub.LifecycleStateKey: "Updating"}}}
	move := lifecycle.Settle(lifecycle.Situation{Pod: pod, Completed: true})
	fmt.Println(move.To)
	// Output: Normal
}

func ExampleBeforeUpdate() {
	hooks := &pub.Lifecycle{InPlaceUpdate: &pub.LifecycleHook{FinalizersHandler: []string{"example.com/drain"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"example.com/drain"}}}
	verdict, move := lifecycle.BeforeUpdate(lifecycle.Situation{Pod: pod, Hooks: hooks})
	fmt.Println(verdict, "in", move.To)
	// Output: Wait in PreparingUpdate
}

func ExampleBeforeDelete() {
	verdict, _ := lifecycle.BeforeDelete(lifecycle.Situation{Pod: &corev1.Pod{}})
	fmt.Println(verdict)
	// Output: Go
}

func ExampleMove_Patch() {
	move := lifecycle.Move{To: pub.LifecycleStateNormal}
	patch, err := move.Patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "7"}}, time.Unix(0, 0).UTC())
	fmt.Println(string(patch), err)
	// Output: {"metadata":{"annotations":{"lifecycle.apps.kruise.io/timestamp":"1970-01-01T00:00:00Z"},"labels":{"lifecycle.apps.kruise.io/state":"Normal"},"uid":"7"}} <nil>
}

func ExampleHold() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReadyConditionType}}}}
	conditions, err := lifecycle.Hold(pod, "my-operator", "backup", time.Unix(0, 0))
	fmt.Println(conditions[0].Type, conditions[0].Status, conditions[0].Message, err)
	// Output: KruisePodReady False [{"userAgent":"my-operator","key":"backup"}] <nil>
}

func ExampleRelease() {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: pub.KruisePodReadyConditionType}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: pub.KruisePodReadyConditionType, Status: corev1.ConditionFalse, Message: `[{"userAgent":"my-operator","key":"backup"}]`,
		}}},
	}
	conditions, err := lifecycle.Release(pod, "my-operator", "backup", time.Unix(0, 0))
	fmt.Println(conditions[0].Status, err)
	// Output: True <nil>
}

func ExampleHasAny() {
	hook := &pub.LifecycleHook{LabelsHandler: map[string]string{"a": "1", "b": "1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}}
	fmt.Println(lifecycle.HasAny(pod, hook), lifecycle.HasAll(pod, hook))
	// Output: true false
}

func ExampleHasAll() {
	fmt.Println(lifecycle.HasAll(&corev1.Pod{}, &pub.LifecycleHook{}), lifecycle.HasAll(&corev1.Pod{}, nil))
	// Output: true false
}

func ExampleStateOf() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pub.LifecycleStateKey: "Updated"}}}
	fmt.Println(lifecycle.StateOf(pod))
	// Output: Updated
}

func ExampleHasGate() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}}}
	fmt.Println(lifecycle.HasGate(pod, "example.com/ready"), lifecycle.HasGate(pod, pub.KruisePodReadyConditionType))
	// Output: true false
}

func ExampleIsHeld() {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: pub.KruisePodReadyConditionType, Status: corev1.ConditionFalse, Message: `[{"userAgent":"my-operator","key":"backup"}]`,
	}}}}
	fmt.Println(lifecycle.IsHeld(pod, "my-operator", "backup"), lifecycle.IsHeld(pod, "my-operator", "restore"))
	// Output: true false
}

func ExampleReady() {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	ready := lifecycle.Ready(pod, time.Unix(0, 0), corev1.PodCondition{Type: "example.com/ready", Status: corev1.ConditionFalse})
	fmt.Println(ready.Status, ready.Message)
	// Output: False readiness gate "example.com/ready" is False
}

func ExampleConditionOf() {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	fmt.Println(lifecycle.ConditionOf(pod, corev1.PodReady).Status, lifecycle.ConditionOf(pod, corev1.PodInitialized) == nil)
	// Output: True true
}
