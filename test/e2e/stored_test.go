//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kruisekit/kruisekit/config/crd"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// olderCRDs writes a file of the CRDs as OpenKruise 1.8 has them: with v1alpha1 alone and without conversion, but for
// StatefulSets.
func olderCRDs(t *testing.T) string {
	t.Helper()
	crds, err := crd.Both(apiextensionsv1.WebhookClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, c := range crds {
		only := "v1alpha1"
		if c.Spec.Names.Kind == "StatefulSet" {
			only = "v1beta1"
		}
		c.Spec.Conversion = nil
		c.Spec.Versions = slices.DeleteFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name != only
		})
		c.Spec.Versions[0].Storage = true
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(text))
	}
	return writeObjects(t, strings.Join(documents, "\n---\n"))
}

func writeObjects(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A kind of each cache that the readiness of a replica waits for.
const olderObjects = `
apiVersion: policy.kruise.io/v1alpha1
kind: PodUnavailableBudget
metadata: {name: stored, namespace: %[1]s}
spec: {selector: {matchLabels: {app: stored}}, maxUnavailable: 1}
---
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: stored, namespace: %[1]s}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: stored}
  subsets: [{name: a, maxReplicas: 1}, {name: b}]
---
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: %[1]s}
spec:
  namespace: %[1]s
  selector: {matchLabels: {app: stored}}
  containers: [{name: proxy, image: proxy}]
`

// storeOlder stores the objects before any manager runs that could convert them. The deployment that follows becomes
// ready only if replicas convert before their caches are synced. It returns their namespace.
func storeOlder(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	namespace := c.Namespace(t)
	file := writeObjects(t, fmt.Sprintf(olderObjects, namespace))
	eventually(t, func(ctx context.Context) error {
		_, err := c.Kubectl(ctx, "apply", "--server-side", "-f", file)
		return err
	})
	return namespace
}

// testStoredOlder reads what was stored before the deployment, in both versions. The CRDs then list the older version.
func (m *deployed) testStoredOlder(t *testing.T, namespace string) {
	for plural, name := range map[string]string{
		"podunavailablebudgets.%s.policy.kruise.io": "stored",
		"workloadspreads.%s.apps.kruise.io":         "stored",
		"sidecarsets.%s.apps.kruise.io":             namespace,
	} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			generation, err := m.Kubectl(t.Context(), "get", "-n", namespace, fmt.Sprintf(plural, version), name, "-o",
				"jsonpath={.metadata.generation}")
			if err != nil || generation != "1" {
				t.Errorf("%s in %s has generation %q: %v", plural, version, generation, err)
			}
		}
		name := strings.Replace(plural, ".%s", "", 1)
		if stored, err := m.Kubectl(t.Context(), "get", "crd", name, "-o", "jsonpath={.status.storedVersions}"); err != nil ||
			stored != `["v1alpha1","v1beta1"]` {
			t.Errorf("%s stores %s: %v", name, stored, err)
		}
	}
	// Later tests compare all SidecarSets with a page.
	if _, err := m.Kubectl(t.Context(), "delete", "sidecarset", namespace); err != nil {
		t.Error(err)
	}
}
