package workload_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/workload"
)

// A pod of a template, alone.
func ExampleNewPod() {
	set := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}
	owner := workload.OwnedBy(set, corev1.SchemeGroupVersion.WithKind("Site"), map[string]string{"site": "web"})
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	pod := workload.NewPod(template, owner, "web-0")
	fmt.Println(pod.Namespace, pod.Name, pod.Labels, metav1.GetControllerOf(pod).Name)
	// Output: shop web-0 map[app:web site:web] web
}
