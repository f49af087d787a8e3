package sidecarterminator

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/write"
)

// A request that the cache does not show yet is that of the pod, and not that of a later pod of the name. The cache is
// read again.
func TestUnseenRequest(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	name := types.NamespacedName{Namespace: "shop", Name: "job"}
	for uid, want := range map[types.UID]bool{"first": true, "second": false} {
		server := apiserver.New(scheme, func() time.Time { return now })
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: uid}}
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers = []corev1.Container{{Name: "app"}, {
			Name: "s", Env: []corev1.EnvVar{{Name: kruise.TerminateSidecarEnvName, Value: "true"}},
		}}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
			{Name: "s", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}
		if err := server.Put(pod); err != nil {
			t.Fatal(err)
		}
		r, err := New(server, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		made := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: finish.RequestName("first"), UID: "r", ResourceVersion: "1",
		}}
		r.requests.Record(name, &write.Write{Verb: write.Create, Object: made}, made, nil)
		in, recheckAfter, err := r.observe(t.Context(), name)
		if err != nil || in == nil || (in.Request != nil) != want || recheckAfter <= 0 {
			t.Errorf("pod %s: %+v, recheck after %s, %v", uid, in, recheckAfter, err)
		}
	}
}
