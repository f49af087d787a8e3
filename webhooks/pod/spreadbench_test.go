package pod_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/replicas"
	"github.com/kruisekit/kruisekit/internal/workloadspread"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
	"github.com/kruisekit/kruisekit/webhooks/pod"
)

// BenchmarkSpread is a review of a pod that gets a subset, as API servers send it: alone, so that each pod costs a
// write, and fifty at once. The processor time includes the API server in memory.
func BenchmarkSpread(b *testing.B) {
	for name, parallel := range map[string]int{"alone": 0, "fifty at once": 50} {
		b.Run(name, func(b *testing.B) {
			hook, body := spreadHandler(b), creationOf(b)
			var n atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			before := processorTime(b)
			if parallel == 0 {
				for b.Loop() {
					reviewSpread(b, hook, body, int(n.Add(1)))
				}
			} else {
				b.SetParallelism(max(1, parallel/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						reviewSpread(b, hook, body, int(n.Add(1)))
					}
				})
			}
			b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

func spreadHandler(b *testing.B) http.Handler {
	b.Helper()
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, appsv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	s := apiserver.New(scheme, time.Now)
	ws := &appsv1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "s", UID: "s", Generation: 1}}
	ws.Spec.TargetReference = &appsv1beta1.TargetReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d9f8"}
	ws.Spec.Subsets = []appsv1beta1.WorkloadSpreadSubset{
		{
			Name:        "a",
			MaxReplicas: ptr.To(intstr.FromInt32(300)),
			Patch:       apiruntime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"zone":"a"}}}`)},
		},
		{Name: "b", MaxReplicas: ptr.To(intstr.FromInt32(400))},
		{Name: "c"},
	}
	if err := s.Put(ws); err != nil {
		b.Fatal(err)
	}
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(workloadspread.Kind())
	if err := s.Get(b.Context(), types.NamespacedName{Namespace: "one", Name: "s"}, raw); err != nil {
		b.Fatal(err)
	}
	x := workloadspread.NewIndex(time.Now)
	if err := x.Put(raw); err != nil {
		b.Fatal(err)
	}
	finder := &replicas.Finder{Cached: s, Live: s, Scales: s, Now: time.Now}
	allocator, err := workloadspread.New(workloadspread.Lookups{
		Spreads: x, Client: s, Targets: &workloadspread.Targets{Finder: finder, Live: s},
	}, workloadspread.Options{})
	if err != nil {
		b.Fatal(err)
	}
	w, err := pod.New([]pod.Step{pod.Spread(allocator)}, pod.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return w.Handler(true)
}

// creationOf returns the body of a review, in which the text NAME stands for what identifies the pod.
func creationOf(b *testing.B) []byte {
	b.Helper()
	p := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(usual), p); err != nil {
		b.Fatal(err)
	}
	p.Name, p.OwnerReferences[0].Name = "NAME", "web-7d9f8"
	object, err := json.Marshal(p)
	if err != nil {
		b.Fatal(err)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "NAME",
			Operation: admissionv1.Create,
			Namespace: "one",
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object:    apiruntime.RawExtension{Raw: object},
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func reviewSpread(b *testing.B, hook http.Handler, body []byte, i int) {
	b.Helper()
	body = bytes.ReplaceAll(body, []byte("NAME"), strconv.AppendInt([]byte("web-"), int64(i), 10))
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, pod.OpenPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	hook.ServeHTTP(answer, r)
	if !bytes.Contains(answer.Body.Bytes(), []byte(`"allowed":true`)) ||
		!bytes.Contains(answer.Body.Bytes(), []byte(`"patch"`)) {
		b.Error(answer.Body.String())
	}
}

// processorTime of the process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
