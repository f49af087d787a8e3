package lifecycle_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

func ExampleSettle() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kruise.LifecycleStateKey: "Updating"}}}
	move := lifecycle.Settle(lifecycle.Situation{Pod: pod, Completed: true})
	fmt.Println(move.To)
	// Output: Normal
}

func ExampleBeforeUpdate() {
	hooks := &kruise.Lifecycle{InPlaceUpdate: &kruise.LifecycleHook{FinalizersHandler: []string{"example.com/drain"}}}
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

func ExampleMove_Next() {
	move := lifecycle.Move{To: kruise.LifecycleStateNormal}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: "7", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"},
	}}
	w, err := move.Next(pod, time.Unix(0, 0).UTC())
	for _, op := range w.Body.(write.Ops) {
		fmt.Println(op.Op, op.Path)
	}
	fmt.Println(err)
	// Output:
	// test /metadata/uid
	// test /metadata/labels/lifecycle.apps.kruise.io~1state
	// add /metadata/labels/lifecycle.apps.kruise.io~1state
	// add /metadata/annotations/lifecycle.apps.kruise.io~1timestamp
	// <nil>
}

func ExampleGate_Hold() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "7"},
		Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{
			ConditionType: kruise.KruisePodReadyConditionType,
		}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionTrue,
		}}},
	}
	w, err := lifecycle.Gate{}.Hold(pod, "my-operator", "backup", time.Unix(0, 0))
	fmt.Println(w.Verb, w.Subresource, err)
	for _, op := range w.Body.(write.Ops)[:4] {
		fmt.Println(op.Op, op.Path)
	}
	// Output:
	// Patch status <nil>
	// test /metadata/uid
	// test /status/conditions/0/status
	// test /status/conditions/0/message
	// test /status/conditions/0/type
}

func ExampleGate_Release() {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type:    kruise.KruisePodReadyConditionType,
			Status:  corev1.ConditionFalse,
			Message: `[{"userAgent":"my-operator","key":"backup"}]`,
		}}},
	}
	w, err := lifecycle.Gate{}.Release(pod, "my-operator", "backup", time.Unix(0, 0))
	fmt.Println(w.Subresource, err)
	w, err = lifecycle.Gate{}.Release(pod, "my-operator", "restore", time.Unix(0, 0))
	fmt.Println(w == nil, err)
	// Output:
	// status <nil>
	// true <nil>
}

func ExampleSetConditions() {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue,
	}}}}
	for _, op := range lifecycle.SetConditions(pod, corev1.PodCondition{
		Type: corev1.PodReady, Status: corev1.ConditionFalse,
	}) {
		fmt.Println(op.Op, op.Path)
	}
	// Output:
	// test /status/conditions/0/type
	// replace /status/conditions/0
}

func ExampleHasAny() {
	hook := &kruise.LifecycleHook{LabelsHandler: map[string]string{"a": "1", "b": "1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}}
	fmt.Println(lifecycle.HasAny(pod, hook), lifecycle.HasAll(pod, hook))
	// Output: true false
}

func ExampleStateOf() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kruise.LifecycleStateKey: "Updated"}}}
	fmt.Println(lifecycle.StateOf(pod))
	// Output: Updated
}

func ExampleHasGate() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{
		ConditionType: "example.com/ready",
	}}}}
	fmt.Println(lifecycle.HasGate(pod, "example.com/ready"), lifecycle.HasGate(pod, kruise.KruisePodReadyConditionType))
	// Output: true false
}

func ExampleGate_IsHeld() {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type:    kruise.KruisePodReadyConditionType,
		Status:  corev1.ConditionFalse,
		Message: `[{"userAgent":"my-operator","key":"backup"}]`,
	}}}}
	gate := lifecycle.Gate{}
	fmt.Println(gate.IsHeld(pod, "my-operator", "backup"), gate.IsHeld(pod, "my-operator", "restore"))
	// Output: true false
}

func ExampleConditionOf() {
	pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue,
	}}}}
	fmt.Println(lifecycle.ConditionOf(pod, corev1.PodReady).Status,
		lifecycle.ConditionOf(pod, corev1.PodInitialized) == nil)
	// Output: True true
}

func ExampleReadiness() {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse},
		}},
	}
	open := corev1.PodCondition{Type: "example.com/ready", Status: corev1.ConditionTrue}
	fmt.Println(lifecycle.Readiness(pod, time.Unix(0, 0), open).Status)
	fmt.Println(lifecycle.Ready(pod, time.Unix(0, 0), open) == nil) // the kubelet makes the pod ready
	// Output:
	// True
	// true
}
