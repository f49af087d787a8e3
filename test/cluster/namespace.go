package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// cleanup bounds the deletion of a namespace.
const cleanup = time.Minute

// Namespace creates a namespace for the test. On real nodes the test deletes the namespace when the test ends: pods
// take resources there, and the cluster may be one that a developer keeps. The control planes of the other levels end
// soon after their tests, so their namespaces stay: without a namespace controller, a deletion would cost the test a
// request for each type of resource.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		Annotations:  map[string]string{"test.kruisekit.dev/name": t.Name()},
	}}
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatalf("make client: %v", err)
	}
	namespace, err = clients.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	if c.Level != Real {
		return namespace.Name
	}
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), cleanup)
		defer cancel()
		// The namespace controller deletes what is in the namespace; the test does not wait for it.
		err := clients.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}
