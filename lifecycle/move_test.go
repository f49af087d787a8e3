package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
)

const (
	preparingNormal = kruise.LifecycleStatePreparingNormal
	normal          = kruise.LifecycleStateNormal
	preparingUpdate = kruise.LifecycleStatePreparingUpdate
	updating        = kruise.LifecycleStateUpdating
	updated         = kruise.LifecycleStateUpdated
	preparingDelete = kruise.LifecycleStatePreparingDelete
)

// podIn is a pod in a state, changed as told.
func podIn(state kruise.LifecycleState, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{}}}
	if state != "" {
		p.Labels[kruise.LifecycleStateKey] = string(state)
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func label(p *corev1.Pod)     { p.Labels["hook"] = "on" }
func finalizer(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "hook/f") }
func onNode(p *corev1.Pod)    { p.Spec.NodeName = "n" }

func hook(mark bool) *kruise.LifecycleHook {
	return &kruise.LifecycleHook{
		LabelsHandler: map[string]string{"hook": "on"}, FinalizersHandler: []string{"hook/f"}, MarkPodNotReady: mark,
	}
}

func TestHooks(t *testing.T) {
	cases := map[string]struct {
		hook     *kruise.LifecycleHook
		pod      *corev1.Pod
		any, all bool
	}{
		"no hook":       {nil, podIn(normal, label, finalizer), false, false},
		"empty hook":    {&kruise.LifecycleHook{}, podIn(normal), false, true},
		"nothing":       {hook(false), podIn(normal), false, false},
		"label":         {hook(false), podIn(normal, label), true, false},
		"finalizer":     {hook(false), podIn(normal, finalizer), true, false},
		"both":          {hook(false), podIn(normal, label, finalizer), true, true},
		"other value":   {hook(false), podIn(normal, func(p *corev1.Pod) { p.Labels["hook"] = "off" }), false, false},
		"empty value":   {&kruise.LifecycleHook{LabelsHandler: map[string]string{"hook": ""}}, podIn(normal), false, false},
		"no label maps": {hook(false), &corev1.Pod{}, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.HasAny(c.pod, c.hook); got != c.any {
				t.Errorf("HasAny: want %v, got %v", c.any, got)
			}
			if got := lifecycle.HasAll(c.pod, c.hook); got != c.all {
				t.Errorf("HasAll: want %v, got %v", c.all, got)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	preNormal := &kruise.Lifecycle{PreNormal: hook(false)}
	inPlace := &kruise.Lifecycle{InPlaceUpdate: hook(true)}
	cases := map[string]struct {
		why string
		s   lifecycle.Situation
		to  kruise.LifecycleState
	}{
		"new": {"nothing holds it", lifecycle.Situation{Pod: podIn(preparingNormal)}, normal},
		"new, no node": {
			"CloneSet waits for the scheduler", lifecycle.Situation{Pod: podIn(preparingNormal), NeedsNode: true}, "",
		},
		"new, on a node": {
			"and goes on", lifecycle.Situation{Pod: podIn(preparingNormal, onNode), NeedsNode: true}, normal,
		},
		"new, held": {
			"a hook waits for all its keys", lifecycle.Situation{Pod: podIn(preparingNormal, label), Hooks: preNormal}, "",
		},
		"new, let go": {
			"no node is asked for when a hook decides",
			lifecycle.Situation{Pod: podIn(preparingNormal, label, finalizer), Hooks: preNormal, NeedsNode: true},
			normal,
		},
		"new, empty hook": {
			"an empty hook is satisfied",
			lifecycle.Situation{Pod: podIn(preparingNormal), Hooks: &kruise.Lifecycle{PreNormal: &kruise.LifecycleHook{}}},
			normal,
		},
		"no state": {
			"a pod of before the label is left alone", lifecycle.Situation{Pod: podIn("")}, "",
		},
		"preparing": {
			"the update is still wanted", lifecycle.Situation{Pod: podIn(preparingUpdate), Hooks: inPlace}, "",
		},
		"rolled back": {
			"the owner of the hook is to put it back",
			lifecycle.Situation{Pod: podIn(preparingUpdate), Hooks: inPlace, AtTarget: true},
			updated,
		},
		"rolled back, still hooked": {
			"it never went away",
			lifecycle.Situation{Pod: podIn(preparingUpdate, label, finalizer), Hooks: inPlace, AtTarget: true},
			normal,
		},
		"rolled back, no hooks any more": {
			"nothing to wait for", lifecycle.Situation{Pod: podIn(preparingUpdate), AtTarget: true}, normal,
		},
		"updating": {
			"containers are not there yet", lifecycle.Situation{Pod: podIn(updating), Hooks: inPlace}, "",
		},
		"updated": {
			"the owner of the hook acts now",
			lifecycle.Situation{Pod: podIn(updating), Hooks: inPlace, Completed: true},
			updated,
		},
		"updated, no inPlaceUpdate": {
			"a workload with other hooks passes through Updated",
			lifecycle.Situation{Pod: podIn(updating), Hooks: preNormal, Completed: true},
			updated,
		},
		"updated, no hooks": {
			"one without goes straight", lifecycle.Situation{Pod: podIn(updating), Completed: true}, normal,
		},
		"hooked again": {
			"all keys are back", lifecycle.Situation{Pod: podIn(updated, label, finalizer), Hooks: inPlace}, normal,
		},
		"half hooked": {
			"one is missing", lifecycle.Situation{Pod: podIn(updated, label), Hooks: inPlace}, "",
		},
		"hook was removed": {
			"no hook puts it back", lifecycle.Situation{Pod: podIn(updated), Hooks: preNormal}, normal,
		},
		"being deleted": {
			"nothing leads back", lifecycle.Situation{Pod: podIn(preparingDelete), AtTarget: true, Completed: true}, "",
		},
		"unknown": {
			"the state of another controller", lifecycle.Situation{Pod: podIn("Dancing"), AtTarget: true, Completed: true}, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.Settle(c.s); got.To != c.to {
				t.Errorf("%s: want %q, got %q", c.why, c.to, got.To)
			}
		})
	}
}

func TestBeforeUpdate(t *testing.T) {
	inPlace := &kruise.Lifecycle{InPlaceUpdate: hook(true)}
	cases := map[string]struct {
		why     string
		s       lifecycle.Situation
		verdict lifecycle.Verdict
		move    lifecycle.Move
	}{
		"no hooks": {"nothing holds it", lifecycle.Situation{Pod: podIn(normal)}, lifecycle.Go, lifecycle.Move{}},
		"no state": {"as good as Normal", lifecycle.Situation{Pod: podIn("")}, lifecycle.Go, lifecycle.Move{}},
		"held": {
			why:     "one key is enough",
			s:       lifecycle.Situation{Pod: podIn(normal, label), Hooks: inPlace},
			verdict: lifecycle.Wait,
			move:    lifecycle.Move{To: preparingUpdate, Hold: kruise.LifecyclePreUpdateHookKey},
		},
		"held, stays ready": {
			why:     "unless asked, the pod serves on",
			s:       lifecycle.Situation{Pod: podIn(normal, label), Hooks: &kruise.Lifecycle{InPlaceUpdate: hook(false)}},
			verdict: lifecycle.Wait,
			move:    lifecycle.Move{To: preparingUpdate},
		},
		"new and held": {
			why:     "a pod may be updated before it was born",
			s:       lifecycle.Situation{Pod: podIn(preparingNormal, finalizer), Hooks: inPlace},
			verdict: lifecycle.Wait,
			move:    lifecycle.Move{To: preparingUpdate, Hold: kruise.LifecyclePreUpdateHookKey},
		},
		"let go": {
			why:     "the keys are gone",
			s:       lifecycle.Situation{Pod: podIn(preparingUpdate), Hooks: inPlace},
			verdict: lifecycle.Go,
			move:    lifecycle.Move{},
		},
		"still held": {
			why:     "not yet",
			s:       lifecycle.Situation{Pod: podIn(preparingUpdate, label), Hooks: inPlace},
			verdict: lifecycle.Wait,
			move:    lifecycle.Move{},
		},
		"updating": {
			why:     "another update overtakes",
			s:       lifecycle.Situation{Pod: podIn(updating, label), Hooks: inPlace},
			verdict: lifecycle.Go,
			move:    lifecycle.Move{},
		},
		"updated": {
			why:     "the hook runs once more",
			s:       lifecycle.Situation{Pod: podIn(updated), Hooks: inPlace},
			verdict: lifecycle.Wait,
			move:    lifecycle.Move{To: preparingUpdate, Hold: kruise.LifecyclePreUpdateHookKey, Rehook: hook(true)},
		},
		"updated, hook gone": {
			why:     "it settles first",
			s:       lifecycle.Situation{Pod: podIn(updated)},
			verdict: lifecycle.Wait,
			move:    lifecycle.Move{},
		},
		"being deleted": {
			why:     "it goes anyway",
			s:       lifecycle.Situation{Pod: podIn(preparingDelete)},
			verdict: lifecycle.Stop,
			move:    lifecycle.Move{},
		},
		"in an unknown state": {
			why:     "the state of another controller",
			s:       lifecycle.Situation{Pod: podIn("Dancing")},
			verdict: lifecycle.Stop,
			move:    lifecycle.Move{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdict, move := lifecycle.BeforeUpdate(c.s)
			if diff := cmp.Diff([]any{c.verdict, c.move}, []any{verdict, move}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
		})
	}
}

func TestBeforeDelete(t *testing.T) {
	hooks := &kruise.Lifecycle{PreDelete: hook(true)}
	cases := map[string]struct {
		s       lifecycle.Situation
		verdict lifecycle.Verdict
		move    lifecycle.Move
	}{
		"no hooks": {lifecycle.Situation{Pod: podIn(normal, label)}, lifecycle.Go, lifecycle.Move{}},
		"held": {
			lifecycle.Situation{Pod: podIn(updating, finalizer), Hooks: hooks},
			lifecycle.Wait,
			lifecycle.Move{To: preparingDelete, Hold: kruise.LifecyclePreDeleteHookKey},
		},
		"still held": {
			lifecycle.Situation{Pod: podIn(preparingDelete, label), Hooks: hooks}, lifecycle.Wait, lifecycle.Move{},
		},
		"let go":     {lifecycle.Situation{Pod: podIn(preparingDelete), Hooks: hooks}, lifecycle.Go, lifecycle.Move{}},
		"not hooked": {lifecycle.Situation{Pod: podIn(normal), Hooks: hooks}, lifecycle.Go, lifecycle.Move{}},
		"stays ready": {
			lifecycle.Situation{Pod: podIn(normal, label), Hooks: &kruise.Lifecycle{PreDelete: hook(false)}},
			lifecycle.Wait,
			lifecycle.Move{To: preparingDelete},
		},
		"unknown, too": {lifecycle.Situation{Pod: podIn("Dancing"), Hooks: hooks}, lifecycle.Go, lifecycle.Move{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			verdict, move := lifecycle.BeforeDelete(c.s)
			if diff := cmp.Diff([]any{c.verdict, c.move}, []any{verdict, move}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMovesAreMadeOnce tries every situation: after a move was written there is no other one until something changes,
// but for Updated, which may pass on to Normal.
func TestMovesAreMadeOnce(t *testing.T) {
	hooks := []*kruise.LifecycleHook{nil, {}, hook(false), hook(true)}
	states := []kruise.LifecycleState{
		"", preparingNormal, normal, preparingUpdate, updating, updated, preparingDelete, "Dancing",
	}
	n := 0
	for _, state := range states {
		for bits := range 1 << 8 {
			for i := range len(hooks) * len(hooks) {
				bit := func(k int) bool { return bits>>k&1 == 1 }
				if !bit(6) && i > 0 || state != preparingNormal && (bit(2) || bit(5)) {
					continue // the same situation once more
				}
				p := podIn(state)
				for k, change := range []func(*corev1.Pod){label, finalizer, onNode} {
					if bit(k) {
						change(p)
					}
				}
				s := lifecycle.Situation{Pod: p, AtTarget: bit(3), Completed: bit(4), NeedsNode: bit(5)}
				if bit(7) {
					gate(p)
				}
				if bit(6) {
					s.Hooks = &kruise.Lifecycle{PreNormal: hooks[i%4], InPlaceUpdate: hooks[i/4], PreDelete: hooks[i%4]}
				}
				before := p.DeepCopy()
				checkOnce(t, s)
				if diff := cmp.Diff(before, p); diff != "" {
					t.Fatalf("the pod was changed:\n%s", diff)
				}
				n++
			}
		}
	}
	t.Logf("%d situations", n)
}

func checkOnce(t *testing.T, s lifecycle.Situation) {
	t.Helper()
	moved := s
	for range 2 {
		m := lifecycle.Settle(moved)
		if m == (lifecycle.Move{}) {
			break
		}
		moved.Pod = carriedOut(t, moved.Pod, m)
	}
	if m := lifecycle.Settle(moved); m != (lifecycle.Move{}) {
		t.Fatalf("%s does not settle: %+v", describe(s), m)
	}
	for name, before := range map[string]func(lifecycle.Situation) (lifecycle.Verdict, lifecycle.Move){
		"update": lifecycle.BeforeUpdate, "delete": lifecycle.BeforeDelete,
	} {
		verdict, m := before(s)
		if m == (lifecycle.Move{}) {
			continue
		}
		if verdict != lifecycle.Wait {
			t.Fatalf("%s: %s with verdict %s", describe(s), name, verdict)
		}
		moved := s
		moved.Pod = carriedOut(t, s.Pod, m)
		if _, again := before(moved); again != (lifecycle.Move{}) {
			t.Fatalf("%s: %s moves again: %+v", describe(s), name, again)
		}
		if s.Hooks == nil {
			t.Fatalf("%s: %s waits without hooks", describe(s), name)
		}
	}
}

func describe(s lifecycle.Situation) string {
	return fmt.Sprintf("state %q labels %v finalizers %v hooks %+v",
		lifecycle.StateOf(s.Pod), s.Pod.Labels, s.Pod.Finalizers, s.Hooks)
}

func TestReleaseOfTheUpdate(t *testing.T) {
	held := func(p *corev1.Pod) {
		gate(p)
		p.Status.Conditions = []corev1.PodCondition{{
			Type: kruise.KruisePodReadyConditionType, Status: corev1.ConditionFalse,
			Message: `[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`,
		}}
	}
	for name, s := range map[string]lifecycle.Situation{
		"to Updated": {
			Pod: podIn(updating, held), Hooks: &kruise.Lifecycle{InPlaceUpdate: hook(true)}, Completed: true,
		},
		"to Normal": {
			Pod: podIn(updating, held, label, finalizer), Hooks: &kruise.Lifecycle{InPlaceUpdate: hook(true)}, Completed: true,
		},
		"after the hook changed its mind": {
			Pod: podIn(updating, held), Hooks: &kruise.Lifecycle{InPlaceUpdate: hook(false)}, Completed: true,
		},
		"after the hook was taken away":      {Pod: podIn(updating, held), Completed: true},
		"left over from an earlier releaser": {Pod: podIn(updated, held)},
	} {
		t.Run(name, func(t *testing.T) {
			if m := lifecycle.Settle(s); m.Release != kruise.LifecyclePreUpdateHookKey {
				t.Errorf("the entry stays: %+v", m)
			}
		})
	}
}

// An entry whose writer died before it moved the pod does not stay for ever.
func TestSettleLetsGo(t *testing.T) {
	for _, key := range []string{kruise.LifecyclePreUpdateHookKey, kruise.LifecyclePreDeleteHookKey} {
		for _, state := range []kruise.LifecycleState{"", kruise.LifecycleStateNormal} {
			pod := &corev1.Pod{}
			pod.Labels = map[string]string{kruise.LifecycleStateKey: string(state)}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
			hold, err := lifecycle.Hold(pod, kruise.LifecycleUserAgent, key, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			pod = sent(t, pod, hold)
			if got, want := lifecycle.Settle(lifecycle.Situation{Pod: pod}), (lifecycle.Move{Release: key}); got != want {
				t.Errorf("%s in state %q: want %v, got %v", key, state, want, got)
			}
		}
	}
}
