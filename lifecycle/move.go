package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/write"
)

// Situation is one pod, as observed, with what its workload wants of it.
type Situation struct {
	// Pod as it was read.
	Pod *corev1.Pod
	// Hooks of the workload; nil when it has none.
	Hooks *kruise.Lifecycle
	// AtTarget reports that the pod has the revision that its workload wants.
	AtTarget bool
	// Completed reports that no in-place update of the pod is under way.
	Completed bool
	// Keys are the labels, annotations and readiness gates of the pod; nil for those of OpenKruise.
	Keys *kruise.Keys
	// NeedsNode keeps a new pod without a preNormal hook out of Normal until the pod is scheduled, as CloneSet does.
	NeedsNode bool
}

// Verdict is whether a change of the pod may begin.
type Verdict string

const (
	// Go means that the change may begin.
	Go Verdict = "Go"
	// Wait means that a hook holds the pod, or that a move is to be written first.
	Wait Verdict = "Wait"
	// Stop means that the pod is in a state from which the change never begins.
	Stop Verdict = "Stop"
)

// Move is a change of a pod's state. The zero Move changes nothing. A Move without To changes only what keeps the pod
// not ready.
type Move struct {
	// To is the new state; empty to stay.
	To kruise.LifecycleState
	// Rehook adds the labels and finalizers of a hook to the pod, so that the hook's owner acts once more.
	Rehook *kruise.LifecycleHook
	// Hold and Release are keys of entries that keep the pod not ready. They are written before the state. Empty for none.
	Hold, Release string

	// Keys under which the state is written; nil for those of OpenKruise.
	Keys *kruise.Keys
}

// Settle returns the move that follows from the pod as it is. Call it for every pod in every pass. A pod that a hook
// holds out of traffic is held again where its entry was lost.
func Settle(s Situation) Move {
	switch s.Keys.StateOf(s.Pod) {
	case kruise.LifecycleStatePreparingNormal:
		if s.isNormal() {
			return s.to(kruise.LifecycleStateNormal)
		}
	case kruise.LifecycleStatePreparingUpdate:
		// The user rolled back while the hook held the pod.
		if s.AtTarget {
			return s.to(s.afterUpdate())
		}
		return s.holdAgain(s.hooks().InPlaceUpdate, kruise.LifecyclePreUpdateHookKey)
	case kruise.LifecycleStatePreparingDelete:
		return s.holdAgain(s.hooks().PreDelete, kruise.LifecyclePreDeleteHookKey)
	case kruise.LifecycleStateUpdating:
		if s.Completed {
			return s.to(s.afterUpdate())
		}
	case kruise.LifecycleStateUpdated:
		if hook := s.hooks().InPlaceUpdate; hook == nil || HasAll(s.Pod, hook) {
			return s.to(kruise.LifecycleStateNormal)
		}
	case "", kruise.LifecycleStateNormal:
		return s.release()
	}
	return Move{}
}

// release ends the entries of hooks on a pod that no hook holds: the writer of the entry stopped before it wrote the
// state, and the pod is not to be updated or deleted any more.
func (s Situation) release() Move {
	for _, key := range []string{kruise.LifecyclePreUpdateHookKey, kruise.LifecyclePreDeleteHookKey} {
		if s.isHeld(key) {
			return Move{Release: key, Keys: s.Keys}
		}
	}
	return Move{}
}

// isHeld reports whether an entry of a hook is to be released. Without the gate it has no effect, and is not written.
func (s Situation) isHeld(key string) bool {
	return HasGate(s.Pod, s.gate().Type) && s.gate().IsHeld(s.Pod, kruise.LifecycleUserAgent, key)
}

// holdAgain holds a pod that a hook has taken out of traffic, and whose entry is gone: another writer replaced the
// message, or the hook marks pods not ready only since then. A message of another format keeps the pod not ready as it
// is.
func (s Situation) holdAgain(hook *kruise.LifecycleHook, key string) Move {
	if hook == nil || !hook.MarkPodNotReady || !HasAny(s.Pod, hook) ||
		!HasGate(s.Pod, s.gate().Type) {
		return Move{}
	}
	entries, err := s.gate().entriesOf(s.Pod)
	if err != nil || slices.Contains(entries, kruise.NotReadyEntry{UserAgent: kruise.LifecycleUserAgent, Key: key}) {
		return Move{}
	}
	return Move{Hold: key, Keys: s.Keys}
}

// BeforeUpdate returns whether an in-place update of the pod may begin. With Wait, write the move, if any.
func BeforeUpdate(s Situation) (Verdict, Move) {
	hook := s.hooks().InPlaceUpdate
	switch s.Keys.StateOf(s.Pod) {
	case "", kruise.LifecycleStatePreparingNormal, kruise.LifecycleStateNormal:
		if HasAny(s.Pod, hook) {
			return Wait, s.to(kruise.LifecycleStatePreparingUpdate)
		}
		return Go, Move{}
	case kruise.LifecycleStatePreparingUpdate:
		if HasAny(s.Pod, hook) {
			return Wait, s.holdAgain(hook, kruise.LifecyclePreUpdateHookKey)
		}
		return Go, Move{}
	case kruise.LifecycleStateUpdating:
		return Go, Move{}
	case kruise.LifecycleStateUpdated:
		if hook == nil {
			return Wait, Move{} // Settle makes it Normal
		}
		m := s.to(kruise.LifecycleStatePreparingUpdate)
		m.Rehook = hook
		return Wait, m
	}
	return Stop, Move{}
}

// BeforeDelete returns whether the pod may be deleted. With Wait, write the move, if any.
func BeforeDelete(s Situation) (Verdict, Move) {
	hook := s.hooks().PreDelete
	if !HasAny(s.Pod, hook) {
		return Go, Move{}
	}
	if s.Keys.StateOf(s.Pod) == kruise.LifecycleStatePreparingDelete {
		return Wait, s.holdAgain(hook, kruise.LifecyclePreDeleteHookKey)
	}
	return Wait, s.to(kruise.LifecycleStatePreparingDelete)
}

// isNormal reports whether a new pod may become Normal.
func (s Situation) isNormal() bool {
	if hook := s.hooks().PreNormal; hook != nil {
		return HasAll(s.Pod, hook)
	}
	return !s.NeedsNode || s.Pod.Spec.NodeName != ""
}

// afterUpdate returns Updated while the owner of the hook still has to act, else Normal.
func (s Situation) afterUpdate() kruise.LifecycleState {
	if s.Hooks != nil && !HasAll(s.Pod, s.Hooks.InPlaceUpdate) {
		return kruise.LifecycleStateUpdated
	}
	return kruise.LifecycleStateNormal
}

// gate returns the readiness gate of the pod that hooks close.
func (s Situation) gate() Gate { return Gate{Type: s.Keys.PodReadyOf(s.Pod)} }

func (s Situation) hooks() kruise.Lifecycle { return ptr.Deref(s.Hooks, kruise.Lifecycle{}) }

// to returns the move to a state, with what it means for readiness.
func (s Situation) to(state kruise.LifecycleState) Move {
	if s.Keys.StateOf(s.Pod) == state {
		return Move{}
	}
	m := Move{To: state, Keys: s.Keys}
	marks := func(hook *kruise.LifecycleHook) bool { return hook != nil && hook.MarkPodNotReady }
	switch state {
	case kruise.LifecycleStatePreparingDelete:
		if marks(s.hooks().PreDelete) {
			m.Hold = kruise.LifecyclePreDeleteHookKey
		}
	case kruise.LifecycleStatePreparingUpdate:
		if marks(s.hooks().InPlaceUpdate) {
			m.Hold = kruise.LifecyclePreUpdateHookKey
		}
	default:
		// An entry must not stay, also where the hook no longer marks pods not ready.
		if s.isHeld(kruise.LifecyclePreUpdateHookKey) {
			m.Release = kruise.LifecyclePreUpdateHookKey
		}
	}
	return m
}

// Next returns the next write of the move: what keeps the pod not ready first, then the state. Call Next again with the
// pod that the API server returned; Next returns nil when the move is complete. If the writer stops in between, the
// functions that return moves return the rest of the move for the pod as it is then.
//
// Each write tests the pod's UID and state label, and what else it was decided upon. Where a test fails (see
// write.IsOutdated), read the pod and decide again.
func (m Move) Next(pod *corev1.Pod, now time.Time) (*write.Write, error) {
	gate := Gate{Type: m.Keys.PodReadyOf(pod)}
	for _, key := range []string{m.Hold, m.Release} {
		if key == "" {
			continue
		}
		entry := kruise.NotReadyEntry{UserAgent: kruise.LifecycleUserAgent, Key: key}
		w, err := gate.set(pod, entry, key == m.Hold, now, write.TestLabel(pod, m.Keys.LifecycleStateKey()))
		if w != nil || err != nil {
			return w, err
		}
	}
	if m.To == "" || m.Keys.StateOf(pod) == m.To {
		return nil, nil
	}
	return m.state(pod, now), nil
}

// state returns the write of the state, with what the hook's owner acts on.
func (m Move) state(pod *corev1.Pod, now time.Time) *write.Write {
	labels, finalizers := map[string]*string{}, pod.Finalizers
	if m.Rehook != nil {
		for key, value := range m.Rehook.LabelsHandler {
			labels[key] = &value
		}
		finalizers = slices.Clip(finalizers)
		for _, f := range m.Rehook.FinalizersHandler {
			if !slices.Contains(finalizers, f) {
				finalizers = append(finalizers, f)
			}
		}
	}
	m.Keys.RemoveOlder(labels, (*kruise.Keys).LifecycleStateKey)
	labels[m.Keys.LifecycleStateKey()] = (*string)(&m.To)
	timestamp := now.Format(time.RFC3339)
	annotations := map[string]*string{m.Keys.LifecycleTimestampKey(): &timestamp}
	m.Keys.RemoveOlder(annotations, (*kruise.Keys).LifecycleTimestampKey)
	ops := append(write.TestUID(pod), write.TestLabel(pod, m.Keys.LifecycleStateKey()))
	ops = append(ops, write.SetLabels(pod, labels)...)
	ops = append(ops, write.SetAnnotations(pod, annotations)...)
	return write.JSON(pod, write.Main, append(ops, write.SetFinalizers(pod, finalizers)...)...)
}

// StateOf returns the state in the pod's label, which is that of OpenKruise; see [kruise.Keys.StateOf] for others. A
// pod without the label counts as Normal.
func StateOf(pod *corev1.Pod) kruise.LifecycleState { return (*kruise.Keys)(nil).StateOf(pod) }

// HasAny reports whether the pod has any label or finalizer of a hook. A hook that is nil or empty has none.
func HasAny(pod *corev1.Pod, hook *kruise.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if got, ok := pod.Labels[key]; ok && got == value {
			return true
		}
	}
	return slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return slices.Contains(pod.Finalizers, f) })
}

// HasAll reports whether the pod has all labels and finalizers of a hook. It reports true for an empty hook and false
// for nil.
func HasAll(pod *corev1.Pod, hook *kruise.LifecycleHook) bool {
	if hook == nil {
		return false
	}
	for key, value := range hook.LabelsHandler {
		if got, ok := pod.Labels[key]; !ok || got != value {
			return false
		}
	}
	return !slices.ContainsFunc(hook.FinalizersHandler, func(f string) bool { return !slices.Contains(pod.Finalizers, f) })
}
