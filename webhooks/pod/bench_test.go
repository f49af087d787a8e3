package pod_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// usual is a pod of the size of most, as API servers send them.
const usual = `
metadata:
  generateName: web-7d9f8-
  namespace: one
  labels: {app: web, pod-template-hash: 7d9f8, tier: front, example.com/zone: a}
  annotations: {checksum/config: 0123456789abcdef, prometheus.io/scrape: "true"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-7d9f8, uid: 8a2f, controller: true,
    blockOwnerDeletion: true}]
  managedFields: [{manager: kube-controller-manager, operation: Update, apiVersion: v1, fieldsType: FieldsV1,
    fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {"k:{name:a}": {"f:image": {},
    "f:name": {}}}}}}]
spec:
  containers:
  - &c
    name: main
    image: registry.example.com/shop/web:1.2.3
    ports: [{name: http, containerPort: 8080, protocol: TCP}]
    env: [{name: A, value: a}, {name: B, value: b}, {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
    volumeMounts: [{name: data, mountPath: /data}, {name: token,
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}]
    livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 10}
    readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
  - {<<: *c, name: second}
  - {<<: *c, name: third}
  volumes: [{name: data, emptyDir: {}}, {name: token, projected: {sources: [{serviceAccountToken: {path: token,
    expirationSeconds: 3607}}]}}]
  restartPolicy: Always
  serviceAccountName: default
  tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]
`

// rich is a set as people have them, with a few of its abilities.
const rich = `
selector: {matchLabels: {app: %[1]s}}
containers:
- name: side-%[2]d
  image: registry.example.com/side:%[2]d
  env: [{name: MODE, value: fast}]
  volumeMounts: [{name: shared-%[2]d, mountPath: /shared}]
  shareVolumePolicy: {type: enabled}
  transferEnv: [{sourceContainerName: main, envName: A}]
  resources: {requests: {cpu: 10m, memory: 16Mi}}
volumes: [{name: shared-%[2]d, emptyDir: {}}]
`

// installed are so many sets, of which some match the usual pod. They have hashes, as stored ones do.
func installed(t testing.TB, n, matching int) []*appsv1beta1.SidecarSet {
	sets := make([]*appsv1beta1.SidecarSet, n)
	for i := range sets {
		app := fmt.Sprintf("other-%d", i)
		if i < matching {
			app = "web"
		}
		sets[i] = newSet(t, fmt.Sprintf("set-%04d", i), fmt.Sprintf(rich, app, i))
		hash, err := sidecar.Hash(sets[i])
		if err != nil {
			t.Fatal(err)
		}
		sets[i].Annotations = map[string]string{
			"kruise.io/sidecarset-hash": hash, "kruise.io/sidecarset-hash-without-image": hash,
		}
	}
	return sets
}

// admission makes the request of an API server for the usual pod, and a way to have it answered over and over.
func admissionOf(t testing.TB, w *pod.Webhook) func() []byte {
	t.Helper()
	log.SetLogger(logr.Discard())
	req := request(t, "0c8e2c4a-6a3c-4b6e-9a52-0a1b2c3d4e5f", usual)
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req.AdmissionRequest,
	}
	review.Request.Object = runtime.RawExtension{Raw: req.Object.Raw}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	handler := w.Handler(false)
	return func() []byte {
		r := httptest.NewRequest(http.MethodPost, "/mutate-pod?timeout=10s", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer.Body.Bytes()
	}
}

func BenchmarkAdmission(b *testing.B) {
	for _, c := range []struct{ sets, matching int }{{100, 3}, {1000, 3}, {100, 0}, {0, 0}} {
		b.Run(fmt.Sprintf("%d-of-%d", c.matching, c.sets), func(b *testing.B) {
			answer := admissionOf(b, hook(b, nil, pod.Options{}, installed(b, c.sets, c.matching)...))
			b.ReportAllocs()
			for b.Loop() {
				answer()
			}
		})
	}
}

// The whole admission, from the bytes of the request to those of the answer, stays within what was promised; of a
// thousand sets those that do not match cost nothing.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		sets, matching int
		most           float64
	}{{100, 3, 1000}, {1000, 3, 1000}, {1000, 0, 450}} {
		answer := admissionOf(t, hook(t, nil, pod.Options{}, installed(t, c.sets, c.matching)...))
		if injected := strings.Count(string(answer()), `"patch"`); injected != min(c.matching, 1) {
			t.Fatalf("%d of %d sets: %s", c.matching, c.sets, answer())
		}
		got := testing.AllocsPerRun(20, func() { answer() })
		t.Logf("%d of %d sets: %.0f allocations", c.matching, c.sets, got)
		if got > c.most {
			t.Errorf("%d of %d sets: %.0f allocations, want at most %.0f", c.matching, c.sets, got, c.most)
		}
	}
}
