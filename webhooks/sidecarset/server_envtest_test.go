//go:build envtest

package sidecarset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/rig/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
	"github.com/kruisekit/kruisekit/webhooks/sidecarset"
)

// own is the namespace of the manager.
const own = "default"

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"sidecarsets"}, Setup: serve(sidecarset.Options{Namespace: own}),
		Bad: newSet(t, "v1beta1", "bad", `{}`),
	})
	t.Run("Recorded", func(t *testing.T) { testRecorded(t, g) })
	t.Run("Manifests", func(t *testing.T) { testManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { testMistakes(t, g) })
	t.Run("Defaults", func(t *testing.T) { testDefaults(t, g) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, g) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, g) })
	t.Run("Conflicts", func(t *testing.T) { testConflicts(t, g) })
	t.Run("Policy", func(t *testing.T) { testPolicy(t, g) })
}

func serve(o sidecarset.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, api client.Client) error {
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		w, err := sidecarset.New(api, mgr.GetCache(), o)
		if err != nil {
			return err
		}
		return w.SetupWithManager(mgr)
	}
}

// newSet has a spec as it is written.
func newSet(t *testing.T, version, name, spec string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"SidecarSet","metadata":{"name":%q},"spec":%s}`,
		version, name, spec)
	if err := set.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return set
}

// plain is a set of one container, changed by a merge patch.
func plain(t *testing.T, version, name, patch string) *unstructured.Unstructured {
	t.Helper()
	return newSet(t, version, name, spec(t, patch))
}

// dry asks what would become of a set.
func dry(t *testing.T, g *reviewtest.Ground, set *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	set = set.DeepCopy()
	return set, g.Client.Create(t.Context(), set, client.DryRunAll, client.FieldValidation("Strict"))
}

// create makes a set that ends with the test, and waits until the webhooks know it.
func create(t *testing.T, g *reviewtest.Ground, set *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if err := g.Client.Create(t.Context(), set); err != nil {
		t.Fatalf("%s: %v", set.GetName(), err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(g.Client.Delete(context.WithoutCancel(t.Context()), set)); err != nil {
			t.Error(err)
		}
	})
	// What has the same container in the same pods is refused as soon as the set is known.
	twin := set.DeepCopy()
	twin.SetResourceVersion("")
	twin.SetUID("")
	twin.SetName(set.GetName() + "-twin")
	twin.SetAnnotations(nil)
	reviewtest.Until(t, "the webhooks do not know "+set.GetName(), func(ctx context.Context) error {
		if err := g.Client.Create(ctx, twin.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("its twin: %w", err)
		}
		return nil
	})
	return set
}

// configure writes kruise-configuration, which ends with the test.
func configure(t *testing.T, g *reviewtest.Ground, rules string) {
	t.Helper()
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: kruise.ConfigurationName},
		Data:       map[string]string{kruise.SidecarSetPatchPodMetadataWhiteListKey: rules},
	}
	if err := g.Client.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Client.Delete(context.WithoutCancel(t.Context()), config); err != nil {
			t.Error(err)
		}
	})
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
