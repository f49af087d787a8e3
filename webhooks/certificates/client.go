package certificates

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// definition is a CRD without its schemas, which are large and not read here.
type definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion,omitempty"`
		Versions   []version                                 `json:"versions,omitempty"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions,omitempty"`
	} `json:"status"`
}

// version is a version of a CRD without its schema.
type version struct {
	Name    string `json:"name"`
	Storage bool   `json:"storage"`
}

// DeepCopyObject copies.
func (d *definition) DeepCopyObject() runtime.Object {
	c := &definition{TypeMeta: d.TypeMeta, ObjectMeta: *d.DeepCopy()}
	c.Spec.Conversion = d.Spec.Conversion.DeepCopy()
	c.Spec.Versions = slices.Clone(d.Spec.Versions)
	c.Status.StoredVersions = slices.Clone(d.Status.StoredVersions)
	return c
}

// storesOlder reports whether etcd may hold objects in a version that is not the storage version.
func (d *definition) storesOlder() bool {
	return slices.ContainsFunc(d.Status.StoredVersions, func(stored string) bool {
		return !slices.Contains(d.Spec.Versions, version{Name: stored, Storage: true})
	})
}

// newClient reads live, and knows the few kinds without asking the server.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	definitions := apiextensionsv1.SchemeGroupVersion
	scheme.AddKnownTypeWithName(definitions.WithKind(string(conversion)), &definition{})
	metav1.AddToGroupVersion(scheme, definitions)
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionv1.AddToScheme, discoveryv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("make scheme: %w", err)
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range []kind{mutating, validating, conversion} {
		mapper.Add(k.version(), meta.RESTScopeRoot)
	}
	mapper.Add(secret.version(), meta.RESTScopeNamespace)
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

func (k kind) version() schema.GroupVersionKind {
	switch k {
	case secret:
		return corev1.SchemeGroupVersion.WithKind(string(k))
	case conversion:
		return apiextensionsv1.SchemeGroupVersion.WithKind(string(k))
	}
	return admissionv1.SchemeGroupVersion.WithKind(string(k))
}

// follow calls changed whenever the object may have, until the context ends. A watch without a version begins with the
// object as it is and ends after a while, so what one misses the next does not.
func (k *Keeper) follow(ctx context.Context, t Target, changed func()) {
	options := []client.ListOption{client.MatchingFields{"metadata.name": t.name}}
	if t.kind == secret {
		options = append(options, client.InNamespace(k.service.Namespace))
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(t.kind.version().GroupVersion().WithKind(string(t.kind) + "List"))
	for delay := firstRetry; ctx.Err() == nil; {
		began := k.options.Clock.Now()
		watch, err := k.client.Watch(ctx, list, options...)
		if err == nil {
			changed() // what is gone by now gives no event
			for range watch.ResultChan() {
				changed()
			}
			watch.Stop()
		} else if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Watch", "object", t.String())
		}
		if k.options.Clock.Since(began) > time.Minute {
			delay = firstRetry
		}
		if k.pause(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, lastRetry)
	}
}
