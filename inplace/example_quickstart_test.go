package inplace_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// The README shows this.
func Example() {
	oldTemplate := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}},
		Containers:     []corev1.Container{{Name: "web", Image: "web:1"}},
	}}
	newTemplate := oldTemplate.DeepCopy()
	newTemplate.Spec.Containers[0].Image = "web:2"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web-x", Labels: map[string]string{"controller-revision-hash": "web-1"},
	}}
	pod.Spec = oldTemplate.Spec

	change, err := inplace.Diff(oldTemplate, newTemplate, inplace.Policy{})
	if err != nil {
		fmt.Println("recreate:", err)
		return
	}
	action, err := inplace.Next(inplace.Update{Pod: pod, Change: change, Revision: "web-2"}, inplace.Policy{}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(action.Verdict, action.Write.Subresource)
	// Output: Write status
}
