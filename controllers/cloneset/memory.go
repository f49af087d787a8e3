package cloneset

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/workload"
)

// memory is what is known of sets beside what the API server stores. It may be lost at any time.
type memory struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]*knowledge
}

// knowledge is what is known of one set.
type knowledge struct {
	// verified is the UID of the set whose pods were read past the cache.
	verified types.UID
	// pending are the ids of pods whose creation has not succeeded. The next attempt takes the same ids, so that their claims
	// are used, and so that the API server's refusal has the same text.
	pending map[string]bool
	// outdated is how many passes in a row were decided upon older objects.
	outdated int
	// repeats are the recent writes of pods.
	repeats workload.Repeats
	// waits is what the set has been waiting for, and since when.
	waits string
	since time.Time
}

// recall returns a copy of what is known.
func (m *memory) recall(key types.NamespacedName) knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.sets[key]
	if known == nil {
		return knowledge{}
	}
	is := *known
	is.pending = maps.Clone(known.pending)
	return is
}

// note changes what is known.
func (m *memory) note(key types.NamespacedName, change func(*knowledge)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil {
		m.sets = map[types.NamespacedName]*knowledge{}
	}
	if m.sets[key] == nil {
		m.sets[key] = &knowledge{pending: map[string]bool{}}
	}
	change(m.sets[key])
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, key)
}
