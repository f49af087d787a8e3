package daemon

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// newCache makes a cache that knows the scopes of the own kinds before they are installed. A cache that selects objects
// of a kind cannot be made otherwise, and a node may join before the definitions of a fresh install are there.
func newCache(rc *rest.Config, o cache.Options) (cache.Cache, error) {
	if o.Mapper == nil {
		return nil, errors.New("make cache: a mapper is needed")
	}
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(appsv1beta1.GroupVersion.WithKind("NodeImage"), meta.RESTScopeRoot)
	known.Add(appsv1beta1.GroupVersion.WithKind("ContainerRecreateRequest"), meta.RESTScopeNamespace)
	known.Add(appsv1alpha1.GroupVersion.WithKind("NodePodProbe"), meta.RESTScopeRoot)
	o.Mapper = mapper{RESTMapper: o.Mapper, known: known}
	made, err := cache.New(rc, o)
	if err != nil {
		return nil, fmt.Errorf("make cache: %w", err)
	}
	return made, nil
}

// mapper is one that answers for known kinds where they are not installed.
type mapper struct {
	meta.RESTMapper

	known meta.RESTMapper
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		if known, unknown := m.known.RESTMapping(kind, versions...); unknown == nil {
			return known, nil
		}
	}
	return mapping, err
}
