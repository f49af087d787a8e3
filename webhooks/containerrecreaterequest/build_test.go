package containerrecreaterequest_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kruisekit/kruisekit/test/rig/plaintest"
	"github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest"
)

// world is what a reader finds: one pod, and its node.
type world struct {
	pod  *corev1.Pod
	node *metav1.PartialObjectMetadata
	// fail is what reads of a kind end with.
	fail map[string]error
	// read is what was asked for.
	read []string
}

func newWorld() *world {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "app"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", ContainerID: "containerd://1", RestartCount: 2},
		}},
	}
	return &world{
		pod: pod, node: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		fail: map[string]error{},
	}
}

func (w *world) reader() client.Client {
	return interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, into client.Object,
			_ ...client.GetOption,
		) error {
			switch into := into.(type) {
			case *corev1.Pod:
				w.read = append(w.read, "pod "+key.String())
				if err := w.fail["pod"]; err != nil {
					return err
				}
				if w.pod != nil && client.ObjectKeyFromObject(w.pod) == key {
					*into = *w.pod
					return nil
				}
			case *metav1.PartialObjectMetadata:
				w.read = append(w.read, into.Kind+" "+key.String())
				if err := w.fail["node"]; err != nil {
					return err
				}
				if w.node != nil && client.ObjectKeyFromObject(w.node) == key {
					*into = *w.node
					return nil
				}
			default:
				return fmt.Errorf("%T was not expected", into)
			}
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
	})
}

// review sends a request to the webhook. It is an update when something is stored.
func (w *world) review(t *testing.T, o containerrecreaterequest.Options, c [3]string) plaintest.Answer {
	t.Helper()
	webhooks, err := containerrecreaterequest.New(w.reader(), o)
	if err != nil {
		t.Fatal(err)
	}
	version, now, stored := c[0], c[1], c[2]
	r := plaintest.Request(plaintest.Kind("ContainerRecreateRequest"), version, now, stored)
	return webhooks[containerrecreaterequest.MutatePath](t.Context(), r)
}
