package stored

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Memo keeps the untyped objects of a cache as they were decoded last: a pass may look at many of which few have
// changed. The zero value is empty. It is safe for concurrent use.
type Memo[T any, P interface {
	*T
	metav1.Object
}] struct {
	mu    sync.Mutex
	known map[types.NamespacedName]P
}

// Decode returns the object that an untyped one is. It is shared, and only read. It is nil for what cannot be decoded.
func (m *Memo[T, P]) Decode(o client.Object) P {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	name := client.ObjectKeyFromObject(raw)
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.known[name]; known != nil && known.GetResourceVersion() == raw.GetResourceVersion() &&
		known.GetUID() == raw.GetUID() {
		return known
	}
	object := Whole[T](raw)
	if object == nil {
		return nil
	}
	if m.known == nil {
		m.known = map[types.NamespacedName]P{}
	}
	m.known[name] = object
	return object
}

// Forget drops an object that is gone.
func (m *Memo[T, P]) Forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, name)
}

// Whole is Decode of the object of an event; nil for what cannot be decoded, or not as a whole.
func Whole[T any](o client.Object) *T {
	raw, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	object, malformed, err := Decode[T](raw)
	if malformed != nil || err != nil {
		return nil
	}
	return object
}
