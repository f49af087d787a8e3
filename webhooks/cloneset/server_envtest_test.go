//go:build envtest

package cloneset_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/internal/review/reviewtest"
	"github.com/kruisekit/kruisekit/webhooks/cloneset"
	"github.com/kruisekit/kruisekit/webhooks/conversion"
)

// TestAdmission shares one API server.
func TestAdmission(t *testing.T) {
	g := reviewtest.Start(t, reviewtest.Input{
		Resources: []string{"clonesets"}, Setup: serve(cloneset.Options{HostNetworkHostPorts: true}),
		Bad: newSet(t, "v1beta1", "default", `{"selector":{"matchLabels":null}}`),
	})
	k := kind()
	t.Run("Manifests", func(t *testing.T) { k.Manifests(t, g); testRefusedManifests(t, g) })
	t.Run("Mistakes", func(t *testing.T) { k.Mistakes(t, g) })
	t.Run("Defaults", func(t *testing.T) { testDefaults(t, g) })
	t.Run("Template", func(t *testing.T) { testTemplate(t, g) })
	t.Run("Unknown", func(t *testing.T) { testUnknown(t, g) })
	t.Run("Recorded", func(t *testing.T) { k.Recorded(t, g, "template", "volumeClaimTemplates", "updateStrategy") })
	t.Run("Calls", func(t *testing.T) { testCalls(t, g) })
	t.Run("HostPorts", func(t *testing.T) { testHostPorts(t, g) })
	t.Run("PodsToDelete", func(t *testing.T) { testPodsToDelete(t, g) })
	t.Run("OnDelete", func(t *testing.T) { testOnDelete(t, g) })
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, g) })
	reviewtest.NoTemplates(t, g)
	t.Run("Policy", func(t *testing.T) {
		k.Policy(t, g, reviewtest.Alone{Defaulted: "revisionHistoryLimit", Bad: `{"updateStrategy":{"type":"x"}}`, At: "spec.updateStrategy.type"}, func(t *testing.T, reviewer string) {
			reviewAll(t, g, reviewer)
		})
	})
}

func serve(o cloneset.Options) reviewtest.Setup {
	return func(mgr ctrl.Manager, api client.Client) error {
		mgr.GetWebhookServer().Register(conversion.Path, conversion.NewHandler())
		w, err := cloneset.New(api, o)
		if err != nil {
			return err
		}
		return w.SetupWithManager(mgr)
	}
}

func kind() reviewtest.Kind { return reviewtest.Kind{Name: "cloneset", New: newSet} }

// newSet is a CloneSet of one container whose spec is changed by a merge patch.
func newSet(t *testing.T, version, namespace, patch string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{}
	if err := set.UnmarshalJSON([]byte(fmt.Sprintf(`{"apiVersion":"apps.kruise.io/%s","kind":"CloneSet",
		"metadata":{"generateName":"set-","namespace":%q},"spec":%s}`, version, namespace, spec(t, patch)))); err != nil {
		t.Fatal(err)
	}
	return set
}
