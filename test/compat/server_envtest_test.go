//go:build envtest

package compat

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// server is a real API server.
type server struct {
	*cluster.Cluster
	dynamic dynamic.Interface
	scheme  *runtime.Scheme
	schemas map[schema.GroupVersionKind]map[string]field
	// crds are those that the tests speak about, by kind; installing them is up to the test.
	crds map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
}

// newServer starts an API server of the test's own: what a CRD converts with holds for all who use the server.
func newServer(t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition) *server {
	t.Helper()
	c := cluster.Start(t, cluster.Options{Private: true})
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		Cluster: c, dynamic: client, scheme: newScheme(t), schemas: schemas(t),
		crds: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{},
	}
	s.knows(crds)
	return s
}

// knows sets the CRDs that the tests speak about.
func (s *server) knows(crds []*apiextensionsv1.CustomResourceDefinition) {
	for _, c := range crds {
		s.crds[schema.GroupKind{Group: c.Spec.Group, Kind: c.Spec.Names.Kind}] = c
	}
}

// newServerOfBoth has every kind in all its versions, converted by this process.
func newServerOfBoth(t *testing.T) *server {
	t.Helper()
	webhook := httptest.NewTLSServer(conversion.NewHandler())
	t.Cleanup(webhook.Close)
	url := webhook.URL + conversion.Path
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{
		URL:      &url,
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, crds)
	for _, c := range crds {
		obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			t.Fatal(err)
		}
		delete(obj, "status")
		resource := s.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
		if _, err := resource.Create(t.Context(),
			&unstructured.Unstructured{Object: obj}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.waitForKinds(t)
	return s
}

// waitForKinds returns when every version of every kind is served.
func (s *server) waitForKinds(t *testing.T) {
	t.Helper()
	for _, c := range s.crds {
		for _, v := range c.Spec.Versions {
			resource := schema.GroupVersionResource{Group: c.Spec.Group, Version: v.Name, Resource: c.Spec.Names.Plural}
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
				func(ctx context.Context) (bool, error) {
					_, err := s.dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
					if apierrors.IsNotFound(err) {
						return false, nil
					}
					return err == nil, err
				})
			if err != nil {
				t.Fatalf("%s is not served: %v", resource, err)
			}
		}
	}
}

// crd gives the CRD of a kind.
func (s *server) crd(t *testing.T, kind schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	c, ok := s.crds[kind]
	if !ok {
		t.Fatalf("there is no CRD of %s", kind)
	}
	return c
}

// versions are those in which a kind is served.
func (s *server) versions(t *testing.T, kind schema.GroupKind) []string {
	t.Helper()
	var names []string
	for _, v := range s.crd(t, kind).Spec.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}

// resource gives the client of a kind, in the default namespace if the kind has one.
func (s *server) resource(t *testing.T, gvk schema.GroupVersionKind) dynamic.ResourceInterface {
	t.Helper()
	c := s.crd(t, gvk.GroupKind())
	resource := s.dynamic.Resource(gvk.GroupVersion().WithResource(c.Spec.Names.Plural))
	if c.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return resource.Namespace(metav1.NamespaceDefault)
	}
	return resource
}

// contextOfCleanup is for what runs after a test, whose own context has ended by then.
func contextOfCleanup() context.Context { return context.Background() }
