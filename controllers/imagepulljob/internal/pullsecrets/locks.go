package pullsecrets

import "sync"

// locks is one lock for each key that is in use.
type locks struct {
	mu   sync.Mutex
	held map[string]*held
}

// held is a lock with the number of those who hold it or wait for it.
type held struct {
	mu    sync.Mutex
	users int
}

// lock locks a key, and returns what unlocks it.
func (l *locks) lock(key string) (unlock func()) {
	l.mu.Lock()
	h := l.held[key]
	if h == nil {
		if l.held == nil {
			l.held = map[string]*held{}
		}
		h = &held{}
		l.held[key] = h
	}
	h.users++
	l.mu.Unlock()
	h.mu.Lock()
	return func() {
		h.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(l.held, key)
		}
	}
}
