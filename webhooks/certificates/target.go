package certificates

import (
	"bytes"
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/write"
)

// carries reports whether a target needs no patch.
func (k *Keeper) carries(ctx context.Context, t Target, bundle []byte) (bool, error) {
	_, patch, err := k.difference(ctx, t, bundle)
	return len(patch) == 0, err
}

// inject writes the CA into the entries of a target that name the service, where it is another.
func (k *Keeper) inject(ctx context.Context, t Target, bundle []byte) error {
	object, patch, err := k.difference(ctx, t, bundle)
	if err != nil || len(patch) == 0 {
		return err
	}
	logger := log.FromContext(ctx).WithValues("object", t.String())
	if k.options.External {
		logger.Info("Left a target without the CA of the Secret: the program that fills the Secret must write it")
		return nil
	}
	raw, err := write.Encode(patch)
	if err != nil {
		return err
	}
	if err := k.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, raw)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("inject CA into %s: %w", t, err)
	}
	logger.Info("Injected CA")
	return nil
}

// difference reads a target and makes the patch that it needs. One that does not exist needs none.
func (k *Keeper) difference(ctx context.Context, t Target, bundle []byte) (client.Object, []write.Op, error) {
	var object client.Object
	switch t.kind {
	case mutating:
		object = &admissionv1.MutatingWebhookConfiguration{}
	case validating:
		object = &admissionv1.ValidatingWebhookConfiguration{}
	default:
		object = &definition{}
	}
	if err := k.client.Get(ctx, types.NamespacedName{Name: t.name}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return object, nil, nil
		}
		return nil, nil, fmt.Errorf("read %s: %w", t, err)
	}
	if d, ok := object.(*definition); ok {
		k.conversions.observe(d, k.converts(d))
	}
	return object, k.operations(object, bundle), nil
}

// converts reports whether API servers ask the service to convert objects of a CRD.
func (k *Keeper) converts(d *definition) bool {
	c := d.client()
	return c != nil && c.Service != nil && c.Service.Namespace == k.service.Namespace && c.Service.Name == k.service.Name
}

// operations change the CA alone, and test before that the entries are still those that were read.
func (k *Keeper) operations(object client.Object, bundle []byte) []write.Op {
	var all []write.Op
	add := func(path string, have []byte, namespace, name string, tests ...write.Op) {
		if namespace == k.service.Namespace && name == k.service.Name && !bytes.Equal(have, bundle) {
			all = append(append(all, tests...), write.Add(path+"/clientConfig/caBundle", bundle))
		}
	}
	webhook := func(i int, name string, c *admissionv1.WebhookClientConfig) {
		if path := fmt.Sprintf("/webhooks/%d", i); c.Service != nil {
			add(path, c.CABundle, c.Service.Namespace, c.Service.Name, write.Test(path+"/name", name))
		}
	}
	switch o := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			webhook(i, o.Webhooks[i].Name, &o.Webhooks[i].ClientConfig)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			webhook(i, o.Webhooks[i].Name, &o.Webhooks[i].ClientConfig)
		}
	case *definition:
		if k.converts(o) {
			add("/spec/conversion/webhook", o.client().CABundle, k.service.Namespace, k.service.Name)
		}
	}
	return all
}

// client is how the API server reaches a conversion webhook.
func (d *definition) client() *apiextensionsv1.WebhookClientConfig {
	if c := d.Spec.Conversion; c != nil && c.Webhook != nil {
		return c.Webhook.ClientConfig
	}
	return nil
}
