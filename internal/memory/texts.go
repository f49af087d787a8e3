package memory

import "sync"

// Texts are the texts that were emitted about objects. The zero value is empty. It is safe for concurrent use.
type Texts[K comparable] struct {
	mu      sync.Mutex
	objects map[K]*texts
}

type texts struct {
	all  map[string]bool
	last string
}

// mostTexts bounds what is kept of an object.
const mostTexts = 100

// First reports whether a text is emitted about an object for the first time.
func (t *Texts[K]) First(object K, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(object)
	first := !of.all[text]
	if len(of.all) >= mostTexts { // they differ each time
		clear(of.all)
	}
	of.all[text] = true
	return first
}

// Changed reports whether a text is not empty and another one than at the call before. A text that comes back after an
// empty one has changed.
func (t *Texts[K]) Changed(object K, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(object)
	changed := of.last != text
	of.last = text
	return changed && text != ""
}

// Forget drops what was emitted about an object.
func (t *Texts[K]) Forget(object K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.objects, object)
}

func (t *Texts[K]) of(object K) *texts {
	if t.objects == nil {
		t.objects = map[K]*texts{}
	}
	if t.objects[object] == nil {
		t.objects[object] = &texts{all: map[string]bool{}}
	}
	return t.objects[object]
}
