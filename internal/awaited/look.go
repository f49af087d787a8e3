package awaited

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/internal/binding"
)

// Discovery lists the resources of one version of a group. A client of discovery is one.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// look is one look at what the API server serves.
type look struct {
	discovery Discovery
	mapper    meta.RESTMapper
	// served are the kinds of the versions that were asked for.
	served map[schema.GroupVersion]map[string]bool
}

// all reports whether all kinds are installed. The mapper alone would send one request for each kind that it does not
// know.
func (l look) all(ctx context.Context, kinds []schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool {
		if !l.kinds(ctx, kind.GroupVersion())[kind.Kind] {
			return true
		}
		installed, err := binding.Installed(l.mapper, kind)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to look up a kind", "kind", kind.String())
		}
		return !installed
	})
}

func (l look) kinds(ctx context.Context, version schema.GroupVersion) map[string]bool {
	if known, asked := l.served[version]; asked {
		return known
	}
	kinds := map[string]bool{}
	l.served[version] = kinds
	list, err := l.discovery.ServerResourcesForGroupVersion(version.String())
	switch {
	case apierrors.IsNotFound(err):
		return kinds
	case err != nil:
		log.FromContext(ctx).Error(err, "Failed to look up kinds", "groupVersion", version.String())
		return kinds
	}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") {
			kinds[r.Kind] = true
		}
	}
	return kinds
}
