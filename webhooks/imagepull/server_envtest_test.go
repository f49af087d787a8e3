//go:build envtest

package imagepull_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{job, list, node}, Setup: serve(open()),
		Bad: newObject(t, job, "v1beta1", "default", `{"image":"a","parallelism":"50%"}`),
	})
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Defaults", func(t *testing.T) { testDefaults(t, g) })
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Gates", func(t *testing.T) { testGates(t, g) })
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

func serve(o imagepull.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, _ client.Client) error {
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		return newWebhooks(o).SetupWithManager(mgr)
	}
}

// newObject is one of the three kinds; a NodeImage has no namespace.
func newObject(t *testing.T, resource, version, namespace, spec string) *unstructured.Unstructured {
	t.Helper()
	kind := map[string]string{job: "ImagePullJob", list: "ImageListPullJob", node: "NodeImage"}[resource]
	if resource == node {
		namespace = ""
	}
	o := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":%q,"metadata":{"generateName":"test-","namespace":%q},"spec":%s}`, version, kind, namespace, spec)
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return o
}

// set changes a field below spec; the value is JSON.
func set(t *testing.T, o *unstructured.Unstructured, field, value string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		t.Fatal(err)
	}
	o.Object["spec"].(map[string]any)[field] = v
}

// create makes an object that ends with the test: a NodeImage would outlive the namespace.
func create(t *testing.T, g *reviewtest.Ground, o *unstructured.Unstructured) {
	t.Helper()
	if err := g.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("%s: %v", o.GetKind(), err)
	}
	if o.GetNamespace() == "" {
		t.Cleanup(func() { remove(t, g, o) })
	}
}
