//go:build nightly

package process_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// unprocessed returns objects that no admission and no controller has seen: the SidecarSet has no hash, and the
// CloneSet has no pods.
func unprocessed(version string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/%[1]s
kind: SidecarSet
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  containers: [{name: proxy, image: "proxy:1"}]
---
apiVersion: apps.kruise.io/%[1]s
kind: WorkloadSpread
metadata: {name: %[1]s, namespace: cold}
spec:
  targetRef: {apiVersion: apps.kruise.io/%[1]s, kind: CloneSet, name: %[1]s}
  subsets: [{name: a, maxReplicas: 2}, {name: b}]
---
apiVersion: apps.kruise.io/%[1]s
kind: CloneSet
metadata: {name: %[1]s, namespace: cold}
spec:
  replicas: 3
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: "main:1"}]}
`, version)
}

// TestColdStarts starts twenty clusters. Two replicas find objects that are stored in both versions, in the order of a
// takeover: those of the older version exist when the CRDs are replaced, and no replica converts them yet. Each pod of
// the CloneSets has the sidecar and a subset.
func TestColdStarts(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), coldStart)
	}
}

func coldStart(t *testing.T) {
	at := address(t)
	c := cluster.Start(t, cluster.Options{Private: true})
	for _, n := range []string{"kruise-system", "kruise-daemon-config", "cold"} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", n); err != nil {
			t.Fatal(err)
		}
	}
	applyAll(t, c, "-f", storedAs(t, c))
	applyAll(t, c, "-f", write(t, unprocessed("v1alpha1")))
	applyAll(t, c, "-k", conversionCRDs)
	applyAll(t, c, "-f", write(t, unprocessed("v1beta1"))) // before there are webhooks
	applyAll(t, c, "-k", "../../../config/default")
	unconverted(t, c)

	begin := time.Now()
	replicas := map[string]*started{}
	for _, name := range []string{"a", "b"} {
		replicas[name] = start(t, c, "kruise-system", "--namespace=")
	}
	var pods corev1.PodList
	cluster.Within(t, 4*time.Minute, func(ctx context.Context) error {
		var unready []error
		for name, s := range replicas {
			unready = append(unready, publish(ctx, c, name, at, s))
		}
		if err := c.Client.List(ctx, &pods, client.InNamespace("cold")); err != nil || len(pods.Items) < 6 {
			return errors.Join(append(unready, err, fmt.Errorf("%d pods", len(pods.Items)))...)
		}
		return nil
	})
	t.Logf("%d pods after %s", len(pods.Items), time.Since(begin).Round(time.Second))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "proxy" }) ||
			pod.Annotations[kruise.MatchedWorkloadSpreadKey] == "" {
			t.Errorf("pod %s of %s has no sidecar or no subset: %v", pod.Name, pod.CreationTimestamp, pod.Annotations)
		}
	}
	for name, s := range replicas {
		if err := s.stop(); err != nil {
			t.Errorf("replica %s ended with %v", name, err)
		}
	}
}

// unconverted fails the test if the API server answers a list while it cannot convert what is stored: the first list of
// an informer would be complete without these objects. API servers answer with an error, also where a list may be old.
// The watch cache of a replaced CRD, or of a restarted API server, serves once all objects are converted.
func unconverted(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, kind := range []string{"SidecarSetList", "WorkloadSpreadList", "CloneSetList"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1beta1", Kind: kind})
		// With a limit, the answer does not wait for a watch cache that is not filled.
		err := c.Client.List(t.Context(), list, &client.ListOptions{Limit: 1, Raw: &metav1.ListOptions{ResourceVersion: "0"}})
		if err == nil || !strings.Contains(err.Error(), "conversion webhook") {
			t.Fatalf("a %s has %d objects while none is converted: %v", kind, len(list.Items), err)
		}
	}
}
