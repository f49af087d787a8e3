package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// table has the rows of one list, as a page gets them.
type table struct {
	name string
	// limit is how many rows are kept at most.
	limit int

	mu      sync.Mutex
	rows    map[string]json.RawMessage
	left    map[string]bool // keys beyond the limit
	note    string          // why rows are missing
	loaded  bool
	readers map[*reader]bool
}

func newTable(name string) *table {
	return &table{
		name: name, limit: maxRows, rows: map[string]json.RawMessage{}, left: map[string]bool{},
		readers: map[*reader]bool{},
	}
}

// maxRows bounds the memory of a list.
const maxRows = 20000

// set gives a key a row.
func (t *table) set(key string, row json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.rows[key]
	switch {
	case ok && bytes.Equal(old, row):
		return
	case !ok && len(t.rows) >= t.limit:
		t.left[key] = true
		t.changed("")
		return
	}
	t.rows[key] = row
	t.changed(key)
}

// remove removes the row of a key.
func (t *table) remove(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left[key] {
		delete(t.left, key)
		t.changed("")
	}
	if _, ok := t.rows[key]; ok {
		delete(t.rows, key)
		t.changed(key)
	}
}

// keep removes all rows but those of some keys.
func (t *table) keep(keys map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.rows {
		if !keys[key] {
			delete(t.rows, key)
			t.changed(key)
		}
	}
	for key := range t.left {
		if !keys[key] {
			delete(t.left, key)
		}
	}
}

// report says whether all rows are there, and why some are not.
func (t *table) report(loaded bool, note string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded != loaded || t.note != note {
		t.loaded, t.note = loaded, note
		t.changed("")
	}
}

// changed marks a key for all readers; the lock is held. The empty key is for the note.
func (t *table) changed(key string) {
	for r := range t.readers {
		r.mark(t, key)
	}
}

// attach gives a reader all rows.
func (t *table) attach(r *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers[r] = true
	r.mark(t, "")
	for key := range t.rows {
		r.mark(t, key)
	}
}

func (t *table) detach(r *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.readers, r)
}

// Change is what a reader learns about a table.
type Change struct {
	Set    map[string]json.RawMessage `json:"set,omitempty"`
	Gone   []string                   `json:"gone,omitempty"`
	Loaded bool                       `json:"loaded"`
	Note   string                     `json:"note,omitempty"`
}

// take returns the rows of keys as they are now.
func (t *table) take(keys []string) Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Change{Loaded: t.loaded, Note: t.note, Set: map[string]json.RawMessage{}}
	if n := len(t.left); n > 0 {
		c.Note = fmt.Sprintf("%s has %d objects more than the %d that are shown. %s", t.name, n, t.limit, t.note)
	}
	for _, key := range keys {
		if key == "" {
			continue
		}
		if row, ok := t.rows[key]; ok {
			c.Set[key] = row
		} else {
			c.Gone = append(c.Gone, key)
		}
	}
	return c
}

// reader is one open page: the keys whose rows it has not got yet. It holds keys alone, so that a slow reader costs
// little.
type reader struct {
	mu    sync.Mutex
	dirty map[*table]map[string]bool
	wake  chan struct{}
}

func newReader() *reader {
	return &reader{dirty: map[*table]map[string]bool{}, wake: make(chan struct{}, 1)}
}

func (r *reader) mark(t *table, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := r.dirty[t]
	if keys == nil {
		keys = map[string]bool{}
		r.dirty[t] = keys
	}
	keys[key] = true
	select {
	case r.wake <- struct{}{}:
	default: // it is awake
	}
}

// take returns what has changed since it was last called, for some keys at most, and reports whether there is more.
func (r *reader) take(most int) (changes map[string]Change, more bool) {
	r.mu.Lock()
	taken := map[*table][]string{}
	for t, keys := range r.dirty {
		for key := range keys {
			if most == 0 {
				more = true
				break
			}
			most--
			taken[t] = append(taken[t], key)
			delete(keys, key)
		}
		if len(keys) == 0 {
			delete(r.dirty, t)
		}
	}
	r.mu.Unlock() // a table locks its readers, never the other way round
	changes = map[string]Change{}
	for t, keys := range taken {
		changes[t.name] = t.take(keys)
	}
	return changes, more
}
