package metrics_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/metrics"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// shown returns the bytes by kind and namespace.
func shown(t *testing.T, s *metrics.Sizes) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			all[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return all
}

func cloneSet(namespace string, bytes int) *unstructured.Unstructured {
	raw := stored.Untyped(v1beta1.GroupVersion.WithKind("CloneSet"))
	raw.SetNamespace(namespace)
	raw.Object["spec"] = map[string]any{"text": fmt.Sprintf("%0*d", bytes, 0)}
	stored.Pack(raw)
	return raw
}

// Objects count while something holds them, packed ones with their text.
func TestSizes(t *testing.T) {
	s := metrics.NewSizes()
	transform := s.Counting(func(o any) (any, error) { return o, nil })
	var held []any
	for range 10 {
		kept, err := transform(cloneSet("shop", 100_000))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, kept)
	}
	pod, err := transform(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all := shown(t, s)
	if n := all["CloneSet shop"]; n < 1_000_000 || n > 1_005_000 || all["Pod shop"] < 10 || len(all) != 2 {
		t.Errorf("got %v", all)
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(pod)
	for until := time.Now().Add(10 * time.Second); len(shown(t, s)) > 0 && time.Now().Before(until); {
		runtime.GC()
		runtime.Gosched()
	}
	if all := shown(t, s); len(all) > 0 {
		t.Errorf("nothing holds them, and they count: %v", all)
	}
	failed := errors.New("no object")
	if _, err := s.Counting(func(any) (any, error) { return nil, failed })("x"); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if kept, err := transform("a tombstone"); kept != "a tombstone" || err != nil {
		t.Errorf("got %v, %v", kept, err)
	}
}

// The ten largest namespaces of a kind have their names, and the others are one.
func TestSizesAreBounded(t *testing.T) {
	s := metrics.NewSizes()
	transform := s.Counting(func(o any) (any, error) { return o, nil })
	var held []any
	for i := range 100 {
		kept, err := transform(cloneSet(fmt.Sprintf("namespace-%02d", i), 1000+i))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, kept)
	}
	all := shown(t, s)
	if len(all) != 11 || all["CloneSet namespace-99"] == 0 || all["CloneSet namespace-90"] == 0 ||
		all["CloneSet other"] < 90_000 {
		t.Errorf("got %v", all)
	}
	runtime.KeepAlive(held)
}
