package imagepull_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/imagepull"
)

func ExamplePreDownload() {
	pod := func(image string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}}}
	}
	jobs := imagepull.PreDownload(imagepull.Rollout{
		Namespace: "shop",
		Revision:  &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-6d5f"}},
		From:      pod("web:1"), To: pod("web:2"),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	})
	for _, job := range jobs {
		fmt.Println(job.Name, "pulls", job.Spec.Image, "on", job.Spec.Parallelism, "node at a time")
	}
	// Output: web-6d5f-web pulls web:2 on 1 node at a time
}
