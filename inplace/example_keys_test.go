package inplace_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

func ExamplePolicy_keys() {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			"fork.example.com/inplace-update-state": `{"revision":"web-2","lastContainerStatuses":{"web":{"imageID":"sha256:1"}}}`,
		}},
		Spec: corev1.PodSpec{
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "ForkUpdateReady"}},
			Containers:     []corev1.Container{{Name: "web", Image: "web:2"}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "web", ImageID: "sha256:1"}}},
	}
	keys := &kruise.Keys{
		InPlaceState: "own.example.com/inplace-update-state",
		InPlaceGrace: "own.example.com/inplace-update-grace",
		InPlaceReady: "OwnUpdateReady",
		Revision:     "own.example.com/revision",
		// Pods that were created under other names are read under them.
		Older: []kruise.Keys{{InPlaceState: "fork.example.com/inplace-update-state", InPlaceReady: "ForkUpdateReady"}},
	}
	policy := inplace.Policy{Keys: keys}
	action, err := inplace.Next(inplace.Update{Pod: pod}, policy, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(action.Verdict, action.Notes[0].Text)
	// Output: Wait container web does not run image web:2 yet
}
