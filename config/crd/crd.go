package crd

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed bases/*_*.yaml
var bases embed.FS

const hubVersion = "v1beta1"

// Both returns all kinds in all their versions. The webhook that client names converts those whose two versions differ;
// its service path is usually /convert. The API server itself converts the others, also while no webhook answers.
func Both(client apiextensionsv1.WebhookClientConfig) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := load()
	if err != nil {
		return nil, err
	}
	for _, c := range crds {
		if len(c.Spec.Versions) < 2 {
			continue
		}
		if equalVersions(c.Spec.Names.Kind) {
			c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
			continue
		}
		c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             client.DeepCopy(),
				ConversionReviewVersions: []string{"v1"},
			},
		}
	}
	return crds, nil
}

// equalVersions reports whether the versions of a kind are equal. The mode of a pull secret, which only v1beta1 of
// NodeImage has, is pruned from what is written in v1alpha1, as in the reference.
func equalVersions(kind string) bool {
	return kind == "ImagePullJob" || kind == "ImageListPullJob" || kind == "NodeImage"
}

// Hub returns all kinds in their storage version alone. They need no webhook.
func Hub() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	crds, err := load()
	if err != nil {
		return nil, err
	}
	for _, c := range crds {
		if len(c.Spec.Versions) < 2 {
			continue
		}
		var hub []apiextensionsv1.CustomResourceDefinitionVersion
		for _, v := range c.Spec.Versions {
			if v.Name == hubVersion {
				hub = append(hub, v)
			}
		}
		c.Spec.Versions = hub
	}
	return crds, nil
}

// load reads the generated files, in the order of their names.
func load() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(bases, "bases/*.kruise.io_*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list CRDs: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(names))
	for _, name := range names {
		data, err := bases.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		c := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, c); err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		crds = append(crds, c)
	}
	return crds, nil
}
