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

// Texts are the texts that were emitted about objects. The zero value is empty. It is safe for concurrent use.
type Texts[K comparable] struct{ known Of[K, texts] }

type texts struct {
	all  map[string]bool
	last string
}

// mostTexts bounds what is kept of an object.
const mostTexts = 100

// First reports whether a text is emitted about an object for the first time.
func (t *Texts[K]) First(object K, text string) (first bool) {
	t.known.Note(object, func(of *texts) {
		first = !of.all[text]
		if of.all == nil || len(of.all) >= mostTexts { // the texts differ each time
			of.all = map[string]bool{}
		}
		of.all[text] = true
	})
	return first
}

// Changed reports whether a text is not empty and another one than at the call before. A text that comes back after an
// empty one has changed.
func (t *Texts[K]) Changed(object K, text string) (changed bool) {
	t.known.Note(object, func(of *texts) { changed, of.last = of.last != text && text != "", text })
	return changed
}

// Forget drops what was emitted about an object.
func (t *Texts[K]) Forget(object K) { t.known.Forget(object) }
