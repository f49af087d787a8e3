//go:build envtest

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

const (
	conversionCRDs = "../../../config/crd/both"
	coldNamespace  = "shop"
)

// coldObjects have a kind of each cache that readiness waits for, in the older version and in the stored one.
func coldObjects(version string) string {
	return fmt.Sprintf(`
apiVersion: policy.kruise.io/%[1]s
kind: PodUnavailableBudget
metadata: {name: %[1]s, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, maxUnavailable: 1}
---
apiVersion: apps.kruise.io/%[1]s
kind: WorkloadSpread
metadata: {name: %[1]s, namespace: shop}
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

// storedAs returns the directory of the CRDs as OpenKruise 1.8 had them: the older version is the storage version.
func storedAs(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	text, err := c.Kubectl(t.Context(), "kustomize", conversionCRDs)
	if err != nil {
		t.Fatal(err)
	}
	swap := strings.NewReplacer("storage: true", "storage: false", "storage: false", "storage: true")
	var older []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(document, "storage: false") {
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
		slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("webhook"), Port: ptr.To(int32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}}
		slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{at}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(unready == nil)}}}
		return nil
	})
	return errors.Join(err, unready)
}

// A takeover of an installation that stored v1alpha1, and each restart of all replicas after it: no replica runs that converts the objects
// that the caches of new replicas list.
func TestColdStart(t *testing.T) {
	at := address(t)
	c := cluster.Start(t, cluster.Options{Private: true})
	apply := func(arguments ...string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			_, err := c.Kubectl(ctx, append([]string{"apply", "--server-side", "--force-conflicts"}, arguments...)...)
			return err
		})
	}
	for _, n := range []string{"kruise-system", "kruise-daemon-config", coldNamespace} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", n); err != nil {
			t.Fatal(err)
		}
	}
	apply("-f", storedAs(t, c))
	apply("-f", write(t, coldObjects("v1alpha1")))
	apply("-k", conversionCRDs)
	apply("-f", write(t, coldObjects("v1beta1")))
	apply("-k", "../../../config/default")

	flags := []string{"--namespace=", "--webhook-answer-pods"}
	replicas := map[string]*started{"a": start(t, c, "kruise-system", flags...), "b": start(t, c, "kruise-system", flags...)}
	eventually(t, func(ctx context.Context) error {
		var all []error
		for name, s := range replicas {
			all = append(all, publish(ctx, c, name, at, s))
		}
		return errors.Join(all...)
	})
	for _, resource := range []string{"podunavailablebudgets.policy.kruise.io", "workloadspreads.apps.kruise.io", "sidecarsets.apps.kruise.io"} {
		kind, group, _ := strings.Cut(resource, ".")
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			names, err := c.Kubectl(t.Context(), "get", kind+"."+version+"."+group, "-A", "-o", "jsonpath={.items[*].metadata.name}")
			if err != nil || names != "v1alpha1 v1beta1" {
				t.Errorf("%s in %s are %q: %v", kind, version, names, err)
			}
		}
	}
}
