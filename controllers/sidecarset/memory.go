package sidecarset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/ledger"
)

// memory is what is known of sets beside what the API server stores. It may be lost at any time.
type memory struct {
	mu   sync.Mutex
	sets map[string]*recollection
}

// recollection is what is known of one set.
type recollection struct {
	// pods are the writes of pods. The owner that they are under is the namespace.
	pods *ledger.Ledger[*corev1.Pod]
	// refused is until when a pod is left alone, because its update was refused.
	refused map[types.UID]time.Time
	// took is how long it took last to look at everything, and to plan.
	took time.Duration
	// said is what was told last of pods that cannot be dealt with.
	said string
	// step is how far updates were that wait, and since when; stalled is the generation of which that was told.
	step    string
	since   time.Time
	stalled int64
}

func (m *memory) of(set string, r *Reconciler) *recollection {
	if m.sets == nil {
		m.sets = map[string]*recollection{}
	}
	if m.sets[set] == nil {
		m.sets[set] = &recollection{pods: ledger.New[*corev1.Pod](r.live(), r.options.Now), refused: map[types.UID]time.Time{}}
	}
	return m.sets[set]
}

// writes are the own writes of pods of a set.
func (m *memory) writes(set string, r *Reconciler) *ledger.Ledger[*corev1.Pod] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(set, r).pods
}

// refuse leaves a pod alone for a while.
func (m *memory) refuse(set string, r *Reconciler, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(set, r).refused[pod] = r.options.Now().Add(refusalPause)
}

// refusals are the pods that are left alone, and for how long.
func (m *memory) refusals(set string, r *Reconciler) map[types.UID]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, left := r.options.Now(), map[types.UID]time.Duration{}
	refused := m.of(set, r).refused
	for uid, until := range refused {
		if !until.After(now) {
			delete(refused, uid)
			continue
		}
		left[uid] = until.Sub(now)
	}
	return left
}

// took notes how long it took to look and to plan.
func (m *memory) took(set string, r *Reconciler, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(set, r).took = d
}

// says notes what is told of pods that cannot be dealt with, and whether that is new.
func (m *memory) says(set string, r *Reconciler, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(set, r)
	if known.said == text {
		return false
	}
	known.said = text
	return true
}

// stalls notes how far updates of a generation are that wait, empty if none does. It says whether that is to be told, or when it
// may be.
func (m *memory) stalls(set string, r *Reconciler, generation int64, step string) (told bool, left time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, now := m.of(set, r), r.options.Now()
	if known.step != step {
		known.step, known.since = step, now
	}
	if step == "" || known.stalled == generation {
		return false, 0
	}
	if left = known.since.Add(r.options.Stalled).Sub(now); left > 0 {
		return false, left
	}
	known.stalled = generation
	return true, 0
}

// pause is how long to wait for more changes of pods before a set is looked at again. Nobody notices it in a small set. In one
// of thousands, whose pods change all the time while they are updated, it keeps looks and plans to a small part of the time.
func (m *memory) pause(set string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.sets[set]; known != nil {
		return min(max(pauses*known.took, shortestPause), longestPause)
	}
	return shortestPause
}

const (
	pauses        = 5
	shortestPause = 50 * time.Millisecond
	longestPause  = time.Second
	// newcomers is the pause for new pods. They come by hundreds, have what their set wants, and are only counted.
	newcomers = 500 * time.Millisecond
)

func (m *memory) forget(set string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, set)
}

// refusalPause is how long a pod whose update was refused lets others go first.
const refusalPause = 10 * time.Second
