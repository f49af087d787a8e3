package lifecycle_test

import (
	"fmt"
	"slices"
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

// situation has the pod of a workload with hooks. What it says after them is set.
func situation(pod *corev1.Pod, hooks *kruise.Lifecycle, is ...string) lifecycle.Situation {
	return lifecycle.Situation{
		Pod: pod, Hooks: hooks, AtTarget: slices.Contains(is, "at target"), Completed: slices.Contains(is, "completed"),
		NeedsNode: slices.Contains(is, "needs a node"),
	}
}

func TestSettle(t *testing.T) {
	preNormal, inPlace := &kruise.Lifecycle{PreNormal: hook(false)}, &kruise.Lifecycle{InPlaceUpdate: hook(true)}
	empty := &kruise.Lifecycle{PreNormal: &kruise.LifecycleHook{}}
	const target, completed, node = "at target", "completed", "needs a node"
	for why, c := range map[string]struct {
		s  lifecycle.Situation
		to kruise.LifecycleState
	}{
		"nothing holds a new pod":          {situation(podIn(preparingNormal), nil), normal},
		"CloneSet waits for the scheduler": {situation(podIn(preparingNormal), nil, node), ""},
		"and goes on":                      {situation(podIn(preparingNormal, onNode), nil, node), normal},
		"a hook waits for all its keys":    {situation(podIn(preparingNormal, label), preNormal), ""},
		"no node is asked for when a hook decides": {
			situation(podIn(preparingNormal, label, finalizer), preNormal, node), normal,
		},
		"an empty hook is satisfied":              {situation(podIn(preparingNormal), empty), normal},
		"a pod of before the label is left alone": {situation(podIn(""), nil), ""},
		"the update is still wanted":              {situation(podIn(preparingUpdate), inPlace), ""},
		"rolled back, its hook is to put it back": {situation(podIn(preparingUpdate), inPlace, target), updated},
		"rolled back, it never went away": {
			situation(podIn(preparingUpdate, label, finalizer), inPlace, target), normal,
		},
		"rolled back, without hooks":                    {situation(podIn(preparingUpdate), nil, target), normal},
		"containers are not there yet":                  {situation(podIn(updating), inPlace), ""},
		"the owner of the hook acts now":                {situation(podIn(updating), inPlace, completed), updated},
		"with other hooks a pod passes through Updated": {situation(podIn(updating), preNormal, completed), updated},
		"one without hooks goes straight":               {situation(podIn(updating), nil, completed), normal},
		"all keys are back":                             {situation(podIn(updated, label, finalizer), inPlace), normal},
		"one key is missing":                            {situation(podIn(updated, label), inPlace), ""},
		"no hook puts it back":                          {situation(podIn(updated), preNormal), normal},
		"nothing leads back from deletion":              {situation(podIn(preparingDelete), nil, target, completed), ""},
		"the state of another controller is left alone": {situation(podIn("Dancing"), nil, target, completed), ""},
	} {
		if got := lifecycle.Settle(c.s); got.To != c.to {
			t.Errorf("%s: want %q, got %q", why, c.to, got.To)
		}
	}
}

type decision struct {
	s       lifecycle.Situation
	verdict lifecycle.Verdict
	move    lifecycle.Move
}

func testDecisions(
	t *testing.T, decide func(lifecycle.Situation) (lifecycle.Verdict, lifecycle.Move), cases map[string]decision,
) {
	t.Helper()
	for why, c := range cases {
		verdict, move := decide(c.s)
		if diff := cmp.Diff([]any{c.verdict, c.move}, []any{verdict, move}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

func TestBeforeUpdate(t *testing.T) {
	inPlace, serving := &kruise.Lifecycle{InPlaceUpdate: hook(true)}, &kruise.Lifecycle{InPlaceUpdate: hook(false)}
	none, held := lifecycle.Move{}, lifecycle.Move{To: preparingUpdate, Hold: kruise.LifecyclePreUpdateHookKey}
	again := held
	again.Rehook = hook(true)
	testDecisions(t, lifecycle.BeforeUpdate, map[string]decision{
		"nothing holds it":              {situation(podIn(normal), nil), lifecycle.Go, none},
		"no state is as good as Normal": {situation(podIn(""), nil), lifecycle.Go, none},
		"one key is enough":             {situation(podIn(normal, label), inPlace), lifecycle.Wait, held},
		"unless asked, the pod serves on": {
			situation(podIn(normal, label), serving), lifecycle.Wait, lifecycle.Move{To: preparingUpdate},
		},
		"a pod may be held before its birth": {situation(podIn(preparingNormal, finalizer), inPlace), lifecycle.Wait, held},
		"the keys are gone":                  {situation(podIn(preparingUpdate), inPlace), lifecycle.Go, none},
		"the keys are not gone yet":          {situation(podIn(preparingUpdate, label), inPlace), lifecycle.Wait, none},
		"another update overtakes":           {situation(podIn(updating, label), inPlace), lifecycle.Go, none},
		"the hook runs once more":            {situation(podIn(updated), inPlace), lifecycle.Wait, again},
		"without the hook it settles first":  {situation(podIn(updated), nil), lifecycle.Wait, none},
		"a pod that is deleted goes anyway":  {situation(podIn(preparingDelete), nil), lifecycle.Stop, none},
		"the state of another controller":    {situation(podIn("Dancing"), nil), lifecycle.Stop, none},
	})
}

func TestBeforeDelete(t *testing.T) {
	hooks, serving := &kruise.Lifecycle{PreDelete: hook(true)}, &kruise.Lifecycle{PreDelete: hook(false)}
	none, held := lifecycle.Move{}, lifecycle.Move{To: preparingDelete, Hold: kruise.LifecyclePreDeleteHookKey}
	testDecisions(t, lifecycle.BeforeDelete, map[string]decision{
		"no hooks":     {situation(podIn(normal, label), nil), lifecycle.Go, none},
		"held":         {situation(podIn(updating, finalizer), hooks), lifecycle.Wait, held},
		"still held":   {situation(podIn(preparingDelete, label), hooks), lifecycle.Wait, none},
		"let go":       {situation(podIn(preparingDelete), hooks), lifecycle.Go, none},
		"not hooked":   {situation(podIn(normal), hooks), lifecycle.Go, none},
		"stays ready":  {situation(podIn(normal, label), serving), lifecycle.Wait, lifecycle.Move{To: preparingDelete}},
		"unknown, too": {situation(podIn("Dancing"), hooks), lifecycle.Go, none},
	})
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
			hold, err := lifecycle.Gate{}.Hold(pod, kruise.LifecycleUserAgent, key, time.Time{})
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
