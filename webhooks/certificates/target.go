package certificates

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// definition is a CRD with its conversion and its stored versions alone: schemas are large and not read here.
type definition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Conversion *apiextensionsv1.CustomResourceConversion `json:"conversion,omitempty"`
	} `json:"spec"`
	Status struct {
		StoredVersions []string `json:"storedVersions,omitempty"`
	} `json:"status"`
}

// DeepCopyObject copies.
func (d *definition) DeepCopyObject() runtime.Object {
	c := &definition{TypeMeta: d.TypeMeta, ObjectMeta: *d.DeepCopy()}
	c.Spec.Conversion = d.Spec.Conversion.DeepCopy()
	c.Status.StoredVersions = slices.Clone(d.Status.StoredVersions)
	return c
}

// newClient reads live, and knows the few kinds without asking the server.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	scheme.AddKnownTypeWithName(definitions(), &definition{})
	metav1.AddToGroupVersion(scheme, definitions().GroupVersion())
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("make scheme: %w", err)
		}
	}
	mapper.Add(mutating(), meta.RESTScopeRoot)
	mapper.Add(validating(), meta.RESTScopeRoot)
	mapper.Add(definitions(), meta.RESTScopeRoot)
	mapper.Add(secrets(), meta.RESTScopeNamespace)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// inject writes the CA into the entries of a target that name the service, where they have another one.
func (k *Keeper) inject(ctx context.Context, t Target, bundle []byte) error {
	object, err := k.read(ctx, t)
	if err != nil || object == nil {
		return err
	}
	before, _ := object.DeepCopyObject().(client.Object) // a copy has the type of its object
	if !k.trust(object, bundle) {
		return nil
	}
	logger := log.FromContext(ctx).WithValues("object", t.String())
	if k.options.External {
		logger.Info("Left a target without the CA of the Secret: the program that fills the Secret must write it")
		return nil
	}
	if err := k.client.Patch(ctx, object, client.StrategicMergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("inject CA into %s: %w", t, err)
	}
	logger.Info("Injected CA")
	return nil
}

// read returns a target; nil for one that does not exist.
func (k *Keeper) read(ctx context.Context, t Target) (client.Object, error) {
	var object client.Object
	switch t.kind {
	case mutating():
		object = &admissionv1.MutatingWebhookConfiguration{}
	case validating():
		object = &admissionv1.ValidatingWebhookConfiguration{}
	default:
		object = &definition{}
	}
	if err := k.client.Get(ctx, types.NamespacedName{Name: t.name}, object); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil //nolint:nilnil // there is none
		}
		return nil, fmt.Errorf("read %s: %w", t, err)
	}
	if d, ok := object.(*definition); ok {
		if len(d.Status.StoredVersions) > 1 {
			k.older.Store(d.Name, nil)
		} else {
			k.older.Delete(d.Name)
		}
	}
	return object, nil
}

// entry is how API servers reach a webhook through a service.
type entry struct {
	namespace, name string
	bundle          *[]byte
}

// trust sets the CA of the entries that name the service, and reports whether one had another CA.
func (k *Keeper) trust(object client.Object, bundle []byte) bool {
	changed := false
	for _, e := range entries(object) {
		if e.namespace == k.service.Namespace && e.name == k.service.Name && !bytes.Equal(*e.bundle, bundle) {
			*e.bundle, changed = bundle, true
		}
	}
	return changed
}

// entries returns the entries of a target.
func entries(object client.Object) []entry {
	var all []entry
	add := func(c *admissionv1.WebhookClientConfig) {
		if c.Service != nil {
			all = append(all, entry{c.Service.Namespace, c.Service.Name, &c.CABundle})
		}
	}
	switch o := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			add(&o.Webhooks[i].ClientConfig)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			add(&o.Webhooks[i].ClientConfig)
		}
	case *definition:
		if c := o.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			if to := c.Webhook.ClientConfig; to.Service != nil {
				all = append(all, entry{to.Service.Namespace, to.Service.Name, &to.CABundle})
			}
		}
	}
	return all
}
