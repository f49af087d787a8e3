//go:build envtest

package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/test/cluster"
)

// unprocessed are objects as OpenKruise 1.8 stores them, which no admission and no controller has seen: the set has no
// hash, and the CloneSet no pod.
const unprocessed = `
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: cold}
spec:
  selector: {matchLabels: {app: cold}}
  containers: [{name: proxy, image: "proxy:1"}]
---
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: cold, namespace: cold}
spec:
  targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: cold}
  subsets: [{name: a, maxReplicas: 2}, {name: b}]
---
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: cold, namespace: cold}
spec:
  replicas: 3
  selector: {matchLabels: {app: cold}}
  template:
    metadata: {labels: {app: cold}}
    spec: {containers: [{name: main, image: "main:1"}]}
`

// putInEtcd writes by the gateway of etcd.
func putInEtcd(t *testing.T, c *cluster.Cluster, key string, value []byte) {
	t.Helper()
	body, err := json.Marshal(map[string][]byte{"key": []byte(key), "value": value}) // bytes as base64
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(c.Etcd+"/v3/kv/put", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("etcd answers with %s", response.Status)
	}
}

// storeUnprocessed writes the objects into etcd, past admission and conversion.
func storeUnprocessed(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for document := range strings.SplitSeq(unprocessed, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetUID(uuid.NewUUID())
		object.SetGeneration(1)
		object.SetCreationTimestamp(metav1.Now())
		value, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("/registry/apps.kruise.io/%ss/%s/%s",
			strings.ToLower(object.GetKind()), object.GetNamespace(), object.GetName())
		putInEtcd(t, c, strings.ReplaceAll(key, "//", "/"), value)
	}
}

// TestColdStart installs two replicas over objects that no replica has seen and that only they can convert. Each
// pod of the CloneSet has the sidecar, and its subset, also the first one. -count repeats the start.
func TestColdStart(t *testing.T) {
	at := address(t)
	c := cluster.Start(t, cluster.Options{Private: true})
	for _, n := range []string{"kruise-system", "kruise-daemon-config", "cold"} {
		if _, err := c.Kubectl(t.Context(), "create", "namespace", n); err != nil {
			t.Fatal(err)
		}
	}
	applyAll(t, c, "-f", storedAs(t, c))
	applyAll(t, c, "-k", conversionCRDs)
	applyAll(t, c, "-k", "../../../config/default")
	storeUnprocessed(t, c)
	startCold(t, c, at)
}

// startCold starts the replicas, and compares the pods with what they should be.
func startCold(t *testing.T, c *cluster.Cluster, at string) {
	t.Helper()
	replicas := map[string]*started{}
	for _, name := range []string{"a", "b"} {
		replicas[name] = start(t, c, "kruise-system", "--namespace=", "--webhook-answer-pods")
	}
	var pods corev1.PodList
	within(t, 4*time.Minute, func(ctx context.Context) error {
		var unready []error
		for name, s := range replicas {
			unready = append(unready, publish(ctx, c, name, at, s))
		}
		if err := c.Client.List(ctx, &pods, client.InNamespace("cold")); err != nil || len(pods.Items) < 3 {
			return errors.Join(append(unready, err, fmt.Errorf("%d pods", len(pods.Items)))...)
		}
		return nil
	})
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
