package storage

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

type (
	// objects are a page of a list.
	objects = metav1.PartialObjectMetadataList

	definition = apiextensionsv1.CustomResourceDefinition
)

// server is what a migration asks of an API server.
type server interface {
	definition(ctx context.Context, name string) (*definition, error)
	prune(ctx context.Context, name string, patch []byte) error
	list(ctx context.Context, p Plan, limit int64, token string) (*objects, error)
	rewrite(ctx context.Context, p Plan, object types.NamespacedName) error
}

// api is an API server.
type api struct {
	definitions dynamic.NamespaceableResourceInterface
	objects     metadata.Interface
}

func newAPI(config *rest.Config) (*api, error) {
	definitions, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	return &api{definitions: definitions.Resource(crds), objects: objects}, nil
}

func (a *api) definition(ctx context.Context, name string) (*definition, error) {
	found, err := a.definitions.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	crd := &definition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, crd); err != nil {
		return nil, fmt.Errorf("decode CRD: %w", err)
	}
	return crd, nil
}

func (a *api) prune(ctx context.Context, name string, patch []byte) error {
	_, err := a.definitions.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (a *api) list(ctx context.Context, p Plan, limit int64, token string) (*objects, error) {
	return a.objects.Resource(p.Resource).List(ctx, metav1.ListOptions{Limit: limit, Continue: token})
}

// rewrite patches an object with nothing.
func (a *api) rewrite(ctx context.Context, p Plan, object types.NamespacedName) error {
	var of metadata.ResourceInterface = a.objects.Resource(p.Resource)
	if object.Namespace != "" {
		of = a.objects.Resource(p.Resource).Namespace(object.Namespace)
	}
	_, err := of.Patch(ctx, object.Name, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, p.Subresources...)
	return err
}
