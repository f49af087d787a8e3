//go:build envtest

package compat

import (
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/config/crd"
)

// TestInstall applies the CRDs over those of an earlier manager, whose webhook converted the image kinds and which
// wrote its CA. Afterwards the image kinds are written and read in both versions while no manager runs. A server-side
// apply needs the patch that package crd documents. A client-side apply of the stored versions alone drops the others,
// as a platform does; manifests then need no webhook.
func TestInstall(t *testing.T) {
	t.Parallel()
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, crds)
	for _, how := range []struct {
		name  string
		flags []string
	}{{"server side", []string{"--server-side", "--force-conflicts"}}, {"client side", nil}} {
		for _, c := range crds {
			if unconverted(c.Spec.Names.Kind) {
				s.convertByWebhook(t, c)
				if how.flags != nil {
					s.convertByServer(t, c.Name)
				}
			}
		}
		args := append([]string{"apply", "-k", filepath.Join("..", "..", "config", "crd", "both")}, how.flags...)
		if out, err := s.Kubectl(t.Context(), args...); err != nil {
			t.Fatalf("%s: %v\n%s", how.name, err, out)
		}
		if how.flags != nil {
			s.waitForKinds(t)
		}
		t.Run(how.name, func(t *testing.T) { testUnconverted(t, s) })
	}
	t.Run("stored versions", func(t *testing.T) { testStored(t, s) })
}

func testStored(t *testing.T, s *server) {
	crds := filepath.Join("..", "..", "config", "crd", "v1beta1")
	if out, err := s.Kubectl(t.Context(), "apply", "-k", crds); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := s.Kubectl(t.Context(), "wait", "--for=condition=Established", "crd", "--all"); err != nil {
		t.Fatal(err)
	}
	hub, err := crd.Hub()
	if err != nil {
		t.Fatal(err)
	}
	s.knows(hub)
	s.waitForKinds(t)
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		if !slices.Contains(s.versions(t, gvk.GroupKind()), gvk.Version) {
			continue
		}
		t.Run(m.file+"/"+nameOf(fields(t, m.raw)), func(t *testing.T) {
			s.write(t, m)
			s.compare(t, "same version", fields(t, m.raw), read(t, s.resource(t, gvk), m))
		})
	}
}

func unconverted(kind string) bool {
	return kind == "ImagePullJob" || kind == "ImageListPullJob" || kind == "NodeImage"
}

// inVersion returns a manifest as the API server returns it in another version.
func inVersion(t *testing.T, m manifest, gvk schema.GroupVersionKind) map[string]any {
	t.Helper()
	if !unconverted(gvk.Kind) {
		return fields(t, convert(t, m.raw, gvk.GroupVersion().String()))
	}
	object := fields(t, m.raw)
	object["apiVersion"] = gvk.GroupVersion().String()
	if gvk.Version == "v1alpha1" {
		dropModes(object)
	}
	return object
}

// dropModes removes what only v1beta1 of a NodeImage has.
func dropModes(object map[string]any) {
	images, _, _ := unstructured.NestedMap(object, "spec", "images")
	if object["kind"] != "NodeImage" || images == nil {
		return
	}
	for _, image := range images {
		secrets, _, _ := unstructured.NestedSlice(image.(map[string]any), "pullSecrets")
		for _, secret := range secrets {
			delete(secret.(map[string]any), "mode")
		}
		if secrets != nil {
			image.(map[string]any)["pullSecrets"] = secrets
		}
	}
	object["spec"].(map[string]any)["images"] = images
}

func testUnconverted(t *testing.T, s *server) {
	for _, m := range manifests(t) {
		gvk := gvkOf(fields(t, m.raw))
		if !unconverted(gvk.Kind) {
			continue
		}
		t.Run(m.file+"/"+nameOf(fields(t, m.raw)), func(t *testing.T) {
			name := s.writeSpec(t, m).GetName()
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				other := gvk.GroupKind().WithVersion(version)
				got, err := s.resource(t, other).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil || got.GetAPIVersion() != other.GroupVersion().String() {
					t.Errorf("%s in %s: %v", gvk.Kind, version, err)
				}
			}
		})
	}
}

func (s *server) convertByServer(t *testing.T, name string) {
	t.Helper()
	patch := []byte(`[{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`)
	definitions := s.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	if _, err := definitions.Patch(t.Context(), name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		t.Fatal(err)
	}
}

// convertByWebhook installs a CRD, or changes it, so that a webhook which does not answer converts it. A second writer
// adds its CA.
func (s *server) convertByWebhook(t *testing.T, c *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	path := "/convert"
	c = c.DeepCopy()
	c.APIVersion, c.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	c.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service", Path: &path},
			},
		},
	}
	definitions := s.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	if there, err := definitions.Get(t.Context(), c.Name, metav1.GetOptions{}); err == nil {
		c.ResourceVersion = there.GetResourceVersion()
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
	if err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	raw := &unstructured.Unstructured{Object: object}
	if c.ResourceVersion == "" {
		_, err = definitions.Create(t.Context(), raw, metav1.CreateOptions{FieldManager: "earlier"})
	} else {
		_, err = definitions.Update(t.Context(), raw, metav1.UpdateOptions{FieldManager: "earlier"})
	}
	if err != nil {
		t.Fatal(err)
	}
	signer := httptest.NewTLSServer(nil)
	defer signer.Close()
	bundle, err := json.Marshal(map[string]any{
		"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{
			"clientConfig": map[string]any{
				"caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signer.Certificate().Raw}),
			},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.Patch(t.Context(), c.Name, types.MergePatchType, bundle,
		metav1.PatchOptions{FieldManager: "keeper"}); err != nil {
		t.Fatal(err)
	}
}
