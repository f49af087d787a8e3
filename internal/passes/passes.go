package passes

import (
	"sync"
	"time"
)

// Memory keeps a value for each object. Its zero value is empty. It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	mu      sync.Mutex
	objects map[K]*V
}

// Recall returns a copy of what is known of an object; the zero value for nothing. The copy shares maps and slices with
// the value, so that Note must replace them, and not change what they contain.
func (m *Memory[K, V]) Recall(object K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.objects[object]; known != nil {
		return *known
	}
	var nothing V
	return nothing
}

// Note changes what is known of an object. change must not call the memory.
func (m *Memory[K, V]) Note(object K, change func(*V)) {
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
func (m *Memory[K, V]) Forget(object K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, object)
}

// Texts are the texts that were emitted about objects. The zero value is empty. It is safe for concurrent use.
type Texts[K comparable] struct{ known Memory[K, texts] }

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

// Earliest is the shortest of the durations that it was given. Its zero value is never. It is safe for concurrent use.
type Earliest struct {
	mu    sync.Mutex
	after time.Duration
}

// In asks for another pass after a duration. Zero and less ask for none.
func (e *Earliest) In(after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.after = Sooner(e.after, after)
}

// After is the shortest duration; zero for never.
func (e *Earliest) After() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.after
}

// Sooner returns the shorter of two durations, of which zero and less mean never.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Until returns how long it is from now until some seconds after a time. The seconds are at most a hundred years, so
// that a duration holds the answer also where the clock was set back.
func Until(from time.Time, seconds int64, now time.Time) time.Duration {
	const most = 100 * 365 * 24 * 3600
	return from.Add(time.Duration(min(max(seconds, 0), most)) * time.Second).Sub(now)
}
