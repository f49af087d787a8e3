package sidecarset

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/controllers/sidecarset/internal/podwrites"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// memory is the state of sets that the API server does not store. It may be lost at any time.
type memory struct {
	newWrites func() *podwrites.Writes

	mu   sync.Mutex
	sets map[string]*state
}

// state is that of one set, which has one pass at a time.
type state struct {
	pods *podwrites.Writes
	// held are the pods whose update was refused, and the time until which other pods take their turn.
	held map[types.UID]time.Time
	// stall measures how long updates wait.
	stall rollout.Stall
	// judged is the generation whose faults were emitted, and lacking reports that missing containers were.
	judged  int64
	lacking bool
	// took is how long the last pass took to observe and to plan.
	took atomic.Int64
}

// of returns the state of a set.
func (m *memory) of(name string) *state {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil {
		m.sets = map[string]*state{}
	}
	if m.sets[name] == nil {
		m.sets[name] = &state{pods: m.newWrites()}
	}
	return m.sets[name]
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, name)
}

const (
	pauses        = 5
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
	// newcomers is the pause for new pods. They are created by hundreds, need no update, and are only counted.
	newcomers = 500 * time.Millisecond
)

// pause returns how long to wait for more changes of pods before a set is reconciled again. In a set of thousands, whose pods change all
// the time while they are updated, the pause keeps passes to a small part of the time.
func (m *memory) pause(name string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.sets[name]; known != nil {
		return min(max(pauses*time.Duration(known.took.Load()), shortestPause), longestPause)
	}
	return shortestPause
}
