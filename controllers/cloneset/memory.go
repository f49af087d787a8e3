package cloneset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is what is known of sets beside what the API server stores. It may be lost at any time.
type memory struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]*recollection
}

// recollection is what is known of one set.
type recollection struct {
	// looked is the UID of the set whose pods were read past the cache.
	looked types.UID
	// unborn are the ids of pods that were to be created, and are not. They are tried again: claims that were made for them stay,
	// and what the API server says to the next attempt is the same text.
	unborn map[string]bool
}

// recall gives a copy of what is known.
func (m *memory) recall(key types.NamespacedName) recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.sets[key]; known != nil {
		return recollection{known.looked, maps.Clone(known.unborn)}
	}
	return recollection{}
}

// note changes what is known.
func (m *memory) note(key types.NamespacedName, change func(*recollection)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets == nil {
		m.sets = map[types.NamespacedName]*recollection{}
	}
	if m.sets[key] == nil {
		m.sets[key] = &recollection{unborn: map[string]bool{}}
	}
	change(m.sets[key])
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, key)
}

// unborn are the ids of pods that were to be created, and are not, in order.
func (a *act) unborn() []string {
	return slices.Sorted(maps.Keys(a.memory.recall(a.key()).unborn))
}

// giveUpUnborn forgets pods that are not missing any more.
func (a *act) giveUpUnborn() {
	if len(a.plan.scale.Create) == 0 && len(a.unborn()) > 0 {
		a.memory.note(a.key(), func(r *recollection) { clear(r.unborn) })
	}
}

// look reads, before the first creation for a set, its pods past the cache, and takes up those that the cache does not
// show. An earlier process, or an earlier leader, may have made them a moment ago, and no ledger tells. It says whether
// the snapshot has them all.
func (a *act) look(ctx context.Context) (complete bool, err error) {
	if a.memory.recall(a.key()).looked == a.set.UID {
		return true, nil
	}
	var list corev1.PodList
	err = a.live().List(ctx, &list, client.InNamespace(a.set.Namespace), client.MatchingLabelsSelector{Selector: a.selector})
	if err != nil {
		return false, fmt.Errorf("list pods past the cache: %w", err)
	}
	known := map[types.UID]bool{}
	for _, pod := range slices.Concat(a.pods, a.inactive, a.strays) {
		known[pod.UID] = true
	}
	complete = true
	for i := range list.Items {
		if pod := &list.Items[i]; !known[pod.UID] && isOwned(a.set, pod) {
			a.podWrites.Created(a.key(), pod)
			complete = false
		}
	}
	a.memory.note(a.key(), func(r *recollection) { r.looked = a.set.UID })
	if !complete {
		a.wake(time.Millisecond)
	}
	return complete, nil
}
