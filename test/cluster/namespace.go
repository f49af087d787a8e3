package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
)

// cleanup bounds the deletion of a namespace.
const cleanup = time.Minute

// Namespace makes a namespace for the test and deletes it, with all that is in it, when the test ends.
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
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), cleanup)
		defer cancel()
		if err := c.deleteNamespace(ctx, clients, namespace.Name); err != nil {
			t.Errorf("delete namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// deleteNamespace does not wait where there is a controller that sees to the rest, and does its work where there is none.
func (c *Cluster) deleteNamespace(ctx context.Context, clients kubernetes.Interface, name string) error {
	namespaces := clients.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete: %w", err)
	}
	if c.Level != ControlPlane {
		return nil
	}
	if err := c.empty(ctx, clients.Discovery(), name); err != nil {
		return err
	}
	namespace, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	namespace.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(ctx, namespace, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("finalize: %w", err)
	}
	return nil
}

// empty deletes all objects in a namespace. Those with finalizers stay until the controllers of the test, if they still
// run, have done their part.
func (c *Cluster) empty(ctx context.Context, api discovery.DiscoveryInterface, namespace string) error {
	objects, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	lists, err := api.ServerPreferredNamespacedResources()
	if err != nil && len(lists) == 0 {
		return fmt.Errorf("discover: %w", err)
	}
	var failures []error
	now, background := int64(0), metav1.DeletePropagationBackground
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("discover: %w", err)
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "deletecollection") {
				continue
			}
			err := objects.Resource(version.WithResource(resource.Name)).Namespace(namespace).DeleteCollection(ctx,
				metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}, metav1.ListOptions{})
			// A CRD, or its webhook, may have gone since.
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
				failures = append(failures, fmt.Errorf("delete all %s: %w", resource.Name, err))
			}
		}
	}
	return errors.Join(failures...)
}
