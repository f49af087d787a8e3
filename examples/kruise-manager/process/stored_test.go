//go:build envtest || nightly

package process_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kruisekit/kruisekit/test/cluster"
)

const conversionCRDs = "../../../config/crd/both"

// coldObjects have a kind of each cache that readiness waits for, in the older version and in the stored one.
func coldObjects(version string) string {
	return fmt.Sprintf(`
apiVersion: policy.kruise.io/%[1]s
kind: PodUnavailableBudget
metadata: {name: %[1]s, namespace: fixtures}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}
---
apiVersion: apps.kruise.io/%[1]s
kind: WorkloadSpread
metadata: {name: %[1]s, namespace: fixtures}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets: [{name: a, maxReplicas: 1}, {name: b}]
---
apiVersion: apps.kruise.io/%[1]s
kind: SidecarSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  containers: [{name: proxy, image: proxy}]
`, version)
}

// storedAs returns the CRDs as OpenKruise 1.8 stored their objects: as v1alpha1, but for StatefulSets.
func storedAs(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	text, err := c.Kubectl(t.Context(), "kustomize", conversionCRDs)
	if err != nil {
		t.Fatal(err)
	}
	swap := strings.NewReplacer("storage: true", "storage: false", "storage: false", "storage: true")
	var older []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(document, "storage: false") &&
			!strings.Contains(document, "name: statefulsets.apps.kruise.io\n") {
			document = swap.Replace(document)
		}
		older = append(older, document)
	}
	return write(t, strings.Join(older, "\n---\n"))
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// address returns one at which API servers reach this machine, other than the loopback, which endpoints must not have.
func address(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("the machine has no address but the loopback")
	return ""
}

// applyAll applies until the API server knows the kinds, and all fields. It returns what kubectl prints.
func applyAll(t *testing.T, c *cluster.Cluster, arguments ...string) (said string) {
	t.Helper()
	apply := append([]string{"apply", "--server-side", "--force-conflicts", "--validate=strict"}, arguments...)
	cluster.Eventually(t, func(ctx context.Context) (err error) {
		said, err = c.Kubectl(ctx, apply...)
		return err
	})
	return said
}

// publish does the work of the controller of EndpointSlices: an endpoint is ready while its replica is.
func publish(ctx context.Context, c *cluster.Cluster, name, at string, s *started) error {
	port, err := strconv.Atoi(s.webhooks)
	if err != nil {
		return err
	}
	unready := s.ask("/readyz")
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: name}}
	_, err = controllerutil.CreateOrUpdate(ctx, c.Client, slice, func() error {
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: "kruise-webhook-service"}
		slice.AddressType = discoveryv1.AddressTypeIPv4
		slice.Ports = []discoveryv1.EndpointPort{{
			Name: ptr.To("webhook"), Port: ptr.To(int32(port)), Protocol: ptr.To(corev1.ProtocolTCP),
		}}
		slice.Endpoints = []discoveryv1.Endpoint{{
			Addresses: []string{at}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(unready == nil)},
		}}
		return nil
	})
	return errors.Join(err, unready)
}
