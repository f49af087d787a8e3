package memory

import "sync"

// Of keeps a value for each object. Its zero value is empty. It is safe for concurrent use.
type Of[K comparable, V any] struct {
	mu      sync.Mutex
	objects map[K]*V
}

// Recall returns a copy of what is known of an object; the zero value for nothing. The copy shares maps and slices with
// the value, so that Note must replace them, and not change what they contain.
func (m *Of[K, V]) Recall(object K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.objects[object]; known != nil {
		return *known
	}
	var nothing V
	return nothing
}

// Note changes what is known of an object. change must not call the memory.
func (m *Of[K, V]) Note(object K, change func(*V)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[K]*V{}
	}
	if m.objects[object] == nil {
		m.objects[object] = new(V)
	}
	change(m.objects[object])
}

// Forget drops what is known of an object.
func (m *Of[K, V]) Forget(object K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, object)
}
