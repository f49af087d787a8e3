package lifecycle

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/pub"
)

// Situation is one pod as its controller sees it.
type Situation struct {
	// Pod as it is.
	Pod *corev1.Pod
	// Hooks of the workload; nil when it has none.
	Hooks *pub.Lifecycle
	// AtTarget says that the pod carries the revision that it is to have.
	AtTarget bool
	// Completed says that no in-place update of the pod is under way any more.
	Completed bool
	// NeedsNode keeps a new pod without a preNormal hook from Normal until it is on a node, as CloneSet does.
	NeedsNode bool
}

// Verdict says whether a change of the pod may go on.
type Verdict string

const (
	// Go on.
	Go Verdict = "Go"
	// Wait because a hook holds the pod, or a move has to be written first.
	Wait Verdict = "Wait"
	// Stop because the pod is in a state from which this change does not start.
	Stop Verdict = "Stop"
)

// Move is a change of a pod's state. The zero Move stays; one without To changes only what keeps the pod not ready.
type Move struct {
	// To is the new state; empty to stay.
	To pub.LifecycleState
	// Rehook puts the labels and finalizers of a hook on the pod, so that its owner acts once more.
	Rehook *pub.LifecycleHook
	// Hold and Release are keys of entries that keep the pod not ready, to be written with the functions of that name
	// before the state: if the writer dies in between, the move is asked for again. Empty for none.
	Hold, Release string
}

// Settle gives the move that follows from what the pod has become, with no decision left to anybody.
func Settle(s Situation) Move {
	switch StateOf(s.Pod) {
	case pub.LifecycleStatePreparingNormal:
		if s.born() {
			return s.to(pub.LifecycleStateNormal)
		}
	case pub.LifecycleStatePreparingUpdate:
		// The user rolled back while the hook held the pod.
		if s.AtTarget {
			return s.to(s.afterUpdate())
		}
	case pub.LifecycleStateUpdating:
		if s.Completed {
			return s.to(s.afterUpdate())
		}
	case pub.LifecycleStateUpdated:
		if hook := s.hooks().InPlaceUpdate; hook == nil || HasAll(s.Pod, hook) {
			return s.to(pub.LifecycleStateNormal)
		}
	case "", pub.LifecycleStateNormal:
		return s.letGo()
	}
	return Move{}
}

// letGo releases what keeps a pod not ready that no hook holds: whoever wrote the entry has not come to move the pod, and
// the user has changed their mind since.
func (s Situation) letGo() Move {
	for _, key := range []string{pub.LifecyclePreUpdateHookKey, pub.LifecyclePreDeleteHookKey} {
		if IsHeld(s.Pod, pub.LifecycleUserAgent, key) {
			return Move{Release: key}
		}
	}
	return Move{}
}

// BeforeUpdate says whether an in-place update of the pod may begin.
func BeforeUpdate(s Situation) (Verdict, Move) {
	hook := s.hooks().InPlaceUpdate
	switch StateOf(s.Pod) {
	case "", pub.LifecycleStatePreparingNormal, pub.LifecycleStateNormal:
		if HasAny(s.Pod, hook) {
			return Wait, s.to(pub.LifecycleStatePreparingUpdate)
		}
		return Go, Move{}
	case pub.LifecycleStatePreparingUpdate:
		if HasAny(s.Pod, hook) {
			return Wait, Move{}
		}
		return Go, Move{}
	case pub.LifecycleStateUpdating:
		return Go, Move{}
	case pub.LifecycleStateUpdated:
		if hook == nil {
			return Wait, Move{} // Settle makes it Normal
		}
		m := s.to(pub.LifecycleStatePreparingUpdate)
		m.Rehook = hook
		return Wait, m
	}
	return Stop, Move{}
}

// BeforeDelete says whether the pod may be deleted.
func BeforeDelete(s Situation) (Verdict, Move) {
	if !HasAny(s.Pod, s.hooks().PreDelete) {
		return Go, Move{}
	}
	return Wait, s.to(pub.LifecycleStatePreparingDelete)
}

// born says whether a new pod has become what it was made for.
func (s Situation) born() bool {
	if hook := s.hooks().PreNormal; hook != nil {
		return HasAll(s.Pod, hook)
	}
	return !s.NeedsNode || s.Pod.Spec.NodeName != ""
}

// afterUpdate is Updated while the owner of the hook still has to act, else Normal.
func (s Situation) afterUpdate() pub.LifecycleState {
	if s.Hooks != nil && !HasAll(s.Pod, s.Hooks.InPlaceUpdate) {
		return pub.LifecycleStateUpdated
	}
	return pub.LifecycleStateNormal
}

func (s Situation) hooks() *pub.Lifecycle {
	if s.Hooks == nil {
		return &pub.Lifecycle{}
	}
	return s.Hooks
}

// to is the move to a state, with what it means for readiness.
func (s Situation) to(state pub.LifecycleState) Move {
	if StateOf(s.Pod) == state {
		return Move{}
	}
	m := Move{To: state}
	marks := func(hook *pub.LifecycleHook) bool { return hook != nil && hook.MarkPodNotReady }
	switch state {
	case pub.LifecycleStatePreparingDelete:
		if marks(s.hooks().PreDelete) {
			m.Hold = pub.LifecyclePreDeleteHookKey
		}
	case pub.LifecycleStatePreparingUpdate:
		if marks(s.hooks().InPlaceUpdate) {
			m.Hold = pub.LifecyclePreUpdateHookKey
		}
	default:
		// Whatever the hook says today: an entry from before must not stay.
		if IsHeld(s.Pod, pub.LifecycleUserAgent, pub.LifecyclePreUpdateHookKey) {
			m.Release = pub.LifecyclePreUpdateHookKey
		}
	}
	return m
}

// Patch is the move as a strategic merge patch of the pod. It names the pod's UID, so that it fails on another pod
// which took the name meanwhile.
func (m Move) Patch(pod *corev1.Pod, now time.Time) ([]byte, error) {
	labels := map[string]string{}
	meta := map[string]any{
		"uid":         pod.UID,
		"labels":      labels,
		"annotations": map[string]string{pub.LifecycleTimestampKey: now.Format(time.RFC3339)},
	}
	if m.Rehook != nil {
		maps.Copy(labels, m.Rehook.LabelsHandler)
		if len(m.Rehook.FinalizersHandler) > 0 {
			meta["finalizers"] = m.Rehook.FinalizersHandler
		}
	}
	labels[pub.LifecycleStateKey] = string(m.To)
	data, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, fmt.Errorf("encode move to %s: %w", m.To, err)
	}
	return data, nil
}
