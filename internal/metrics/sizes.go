package metrics

import (
	"cmp"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// most namespaces that have a label of their own, for each kind. others is the label of the rest.
	most   = 10
	others = "other"
)

// Sizes are the bytes of objects. It is a collector of metrics, and safe for concurrent use.
type Sizes struct {
	description *prometheus.Desc

	mu    sync.Mutex
	bytes map[owner]int64
}

type owner struct{ kind, namespace string }

// entry is what one object adds.
type entry struct {
	owner

	bytes int64
}

// NewSizes returns sizes of no objects.
func NewSizes() *Sizes {
	return &Sizes{
		description: prometheus.NewDesc("kruisekit_cached_object_bytes", "Encoded bytes of the objects that the process "+
			"holds in its caches, by kind. Of each kind the ten namespaces that take most have their name, "+
			"and the rest is other.", []string{"kind", "namespace"}, nil),
		bytes: map[owner]int64{},
	}
}

// Counting returns a transform that counts what another one returns. An informer that streams its first list calls the
// transform twice for each object of the list: the second time, a typed object has no managedFields, as API servers do
// not send it, and counts already.
func (s *Sizes) Counting(transform func(any) (any, error)) func(any) (any, error) {
	return func(object any) (any, error) {
		before := counted(object)
		kept, err := transform(object)
		if err != nil || before {
			return kept, err
		}
		return s.count(kept), nil
	}
}

// counted reports whether a transform has had a typed object before.
func counted(object any) bool {
	switch o := object.(type) {
	case *corev1.Pod:
		return len(o.ManagedFields) == 0
	case *corev1.PersistentVolumeClaim:
		return len(o.ManagedFields) == 0
	case *appsv1.ControllerRevision:
		return len(o.ManagedFields) == 0
	}
	return false
}

// count returns the object to hold. An untyped one may be an element of a list, which would be held as a whole.
func (s *Sizes) count(object any) any {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		o = &unstructured.Unstructured{Object: o.Object}
		hold(s, o, entry{owner{o.GetKind(), o.GetNamespace()}, sizeOf(o.Object)})
		return o
	case *corev1.Pod:
		hold(s, o, entry{owner{"Pod", o.Namespace}, int64(o.Size())})
	case *corev1.PersistentVolumeClaim:
		hold(s, o, entry{owner{"PersistentVolumeClaim", o.Namespace}, int64(o.Size())})
	case *appsv1.ControllerRevision:
		hold(s, o, entry{owner{"ControllerRevision", o.Namespace}, int64(o.Size())})
	}
	return object
}

// hold counts an entry until its object is freed.
func hold[T any](s *Sizes, object *T, e entry) {
	s.add(e.owner, e.bytes)
	runtime.AddCleanup(object, func(e entry) { s.add(e.owner, -e.bytes) }, e)
}

func (s *Sizes) add(o owner, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes[o] += bytes; s.bytes[o] == 0 {
		delete(s.bytes, o)
	}
}

// sizeOf returns about the bytes of a value as JSON. What is packed counts as its text.
func sizeOf(value any) int64 {
	switch v := value.(type) {
	case string:
		return int64(len(v)) + 2
	case json.Number:
		return int64(len(v))
	case map[string]any:
		n := int64(2)
		for key, below := range v {
			n += int64(len(key)) + 4 + sizeOf(below)
		}
		return n
	case []any:
		n := int64(2)
		for _, below := range v {
			n += 1 + sizeOf(below)
		}
		return n
	}
	return 4
}

// Describe implements prometheus.Collector.
func (s *Sizes) Describe(all chan<- *prometheus.Desc) { all <- s.description }

// Collect implements prometheus.Collector.
func (s *Sizes) Collect(all chan<- prometheus.Metric) {
	for o, bytes := range s.top() {
		all <- prometheus.MustNewConstMetric(s.description, prometheus.GaugeValue, float64(bytes), o.kind, o.namespace)
	}
}

// top returns the namespaces with most bytes, of each kind, and the sum of the others.
func (s *Sizes) top() map[owner]int64 {
	s.mu.Lock()
	bytes := maps.Clone(s.bytes)
	s.mu.Unlock()
	sorted := slices.SortedFunc(maps.Keys(bytes), func(a, b owner) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), strings.Compare(a.kind, b.kind),
			strings.Compare(a.namespace, b.namespace))
	})
	named, shown := map[string]int{}, map[owner]int64{}
	for _, o := range sorted {
		if named[o.kind]++; named[o.kind] > most {
			shown[owner{o.kind, others}] += bytes[o]
			continue
		}
		shown[o] += bytes[o]
	}
	return shown
}
