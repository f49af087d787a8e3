package lean_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/internal/lean"
	"github.com/kruisekit/kruisekit/test/objects"
)

// Objects stay equal, and have their texts in common.
func TestShare(t *testing.T) {
	var list corev1.PodList
	objects.Recorded(t, "2-updating/pods.yaml", &list)
	var texts lean.Strings
	var wait sync.WaitGroup
	for i := range list.Items {
		pod, want := &list.Items[i], list.Items[i].DeepCopy()
		wait.Add(1)
		go func() {
			defer wait.Done()

			if texts.Share(pod); !reflect.DeepEqual(want, pod) {
				t.Errorf("%s is another pod", pod.Name)
			}
		}()
	}
	wait.Wait()
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	one := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: strings.Clone("node-1"), NodeSelector: map[string]string{strings.Clone("zone"): "a"},
	}}
	two := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: strings.Clone("node-1"), NodeSelector: map[string]string{strings.Clone("zone"): "a"},
	}}
	one.Spec.Containers = []corev1.Container{{Image: strings.Clone("nginx:1")}}
	two.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: strings.Clone("nginx:1")}}
	texts.Share(one)
	texts.Share(two)
	if !same(one.Spec.NodeName, two.Spec.NodeName) ||
		!same(one.Spec.Containers[0].Image, two.Status.ContainerStatuses[0].Image) {
		t.Error("equal texts are two")
	}
	for key := range one.Spec.NodeSelector {
		for other := range two.Spec.NodeSelector {
			if !same(key, other) {
				t.Error("equal keys are two")
			}
		}
	}
}

// The table does not grow with the texts of a cluster.
func TestShareIsBounded(t *testing.T) {
	var texts lean.Strings
	for i := range 1 << 17 {
		texts.Share(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint(i)}})
	}
	if n := reflect.ValueOf(&texts).Elem().FieldByName("seen").Len(); n > 1<<16 {
		t.Errorf("%d texts are kept", n)
	}
}

// What an event of a pod costs for its texts.
func BenchmarkShare(b *testing.B) {
	var list corev1.PodList
	objects.Recorded(b, "2-updating/pods.yaml", &list)
	var texts lean.Strings
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		texts.Share(&list.Items[i%len(list.Items)])
	}
}
