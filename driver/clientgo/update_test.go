package clientgo_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/driver"
	"github.com/kruisekit/kruisekit/driver/clientgo"
	"github.com/kruisekit/kruisekit/inplace"
)

// A pod leaves traffic and gets its image in one call, and the call after that waits without a request.
func TestUpdatePod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1"}}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.InPlaceUpdateReady}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:1"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: kruise.InPlaceUpdateReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "web:1", ImageID: "sha256:1"}}
	client := fake.NewClientset(pod)
	u := inplace.Update{
		Pod: pod, Change: &inplace.Change{Images: map[string]string{"main": "web:2"}}, Revision: "web-2",
	}
	for call, requests := range []int{2, 0} {
		client.ClearActions()
		updated, action, err := driver.UpdatePod(t.Context(), clientgo.Sender(client), u, driver.PodOptions{})
		if err != nil || action.Verdict != inplace.Wait || updated.Spec.Containers[0].Image != "web:2" ||
			len(client.Actions()) != requests {
			t.Errorf("call %d: %+v after %d requests, %v", call, action, len(client.Actions()), err)
		}
		u.Pod = updated
	}
}
