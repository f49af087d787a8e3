package lifecycle_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/write"
)

// send applies a write to the pod that the API server has now. It returns the pod unchanged where a test fails.
func send(t testing.TB, now *corev1.Pod, w *write.Write) (*corev1.Pod, bool) {
	t.Helper()
	if w == nil {
		return now, true
	}
	data, err := w.Data()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return now, false
	}
	next := &corev1.Pod{}
	if err := json.Unmarshal(after, next); err != nil {
		t.Fatalf("%v: %s", err, after)
	}
	version, _ := strconv.Atoi(now.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(version + 1)
	return next, true
}

// sent is send of a write that must succeed.
func sent(t testing.TB, now *corev1.Pod, w *write.Write) *corev1.Pod {
	t.Helper()
	next, ok := send(t, now, w)
	if !ok {
		data, _ := w.Data()
		t.Fatalf("rejected: %s", data)
	}
	return next
}

// carriedOut sends all writes of a move.
func carriedOut(t testing.TB, pod *corev1.Pod, m lifecycle.Move) *corev1.Pod {
	t.Helper()
	for range 4 {
		w, err := m.Next(pod, now)
		if err != nil {
			t.Fatal(err)
		}
		if w == nil {
			return pod
		}
		pod = sent(t, pod, w)
	}
	t.Fatalf("%+v has more than three writes", m)
	return nil
}

// versioned is a pod that an API server returned.
func versioned(p *corev1.Pod) { p.ResourceVersion = "7" }

// Writers with reads of any age leave exactly the entries that they hold.
func TestEntriesWithOldReads(t *testing.T) {
	agents := []string{"a", "b", "c", "d"}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		history := []*corev1.Pod{podIn(normal, gate, versioned, ready)}
		want := map[string]bool{}
		for range 40 {
			pod := history[max(0, len(history)-1-random.IntN(3))]
			agent := agents[random.IntN(len(agents))]
			do, wanted := lifecycle.Gate{}.Hold, true
			if random.IntN(2) == 0 {
				do, wanted = lifecycle.Gate{}.Release, false
			}
			w, err := do(pod, agent, "k", now)
			if err != nil {
				t.Fatal(err)
			}
			if w == nil {
				continue
			}
			if next, ok := send(t, history[len(history)-1], w); ok {
				history = append(history, next)
				want[agent] = wanted
			}
		}
		last := history[len(history)-1]
		for _, agent := range agents {
			if got := (lifecycle.Gate{}).IsHeld(last, agent, "k"); got != want[agent] {
				t.Fatalf("seed %d: %s held: %v, want %v: %v", seed, agent, got, want[agent], last.Status.Conditions)
			}
		}
	}
}

func TestMoveNext(t *testing.T) {
	kruiseReady := condition(kruise.KruisePodReadyConditionType, corev1.ConditionTrue, "")
	plain := `{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/labels/lifecycle.apps.kruise.io~1state","value":"Normal"}`
	timed := `{"op":"test","path":"/metadata/annotations","value":null},{"op":"add","path":"/metadata/annotations","value":{"lifecycle.apps.kruise.io/timestamp":"2026-01-02T03:04:05Z"}}`
	cases := map[string]struct {
		pod   *corev1.Pod
		move  lifecycle.Move
		first string
		want  []string
	}{
		"state: one write": {podIn(preparingDelete), lifecycle.Move{To: normal}, "", []string{""}},
		"body: it tests the state": {
			pod:  podIn(normal),
			move: lifecycle.Move{To: preparingDelete},
			first: `[` + plain +
				`,{"op":"add","path":"/metadata/labels/lifecycle.apps.kruise.io~1state","value":"PreparingDelete"},` + timed + `]`,
			want: []string{""},
		},
		"rehook: labels and finalizers come with the state": {
			pod:  podIn(normal),
			move: lifecycle.Move{To: preparingUpdate, Rehook: hook(false)},
			first: `[` + plain +
				`,{"op":"add","path":"/metadata/labels/hook","value":"on"},{"op":"add","path":"/metadata/labels/lifecycle.apps.kruise.io~1state","value":"PreparingUpdate"},` +
				timed +
				`,{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/finalizers","value":["hook/f"]}]`,
			want: []string{""},
		},
		"hold: not ready first": {
			pod:  podIn(normal, gate, kruiseReady, ready),
			move: lifecycle.Move{To: preparingDelete, Hold: kruise.LifecyclePreDeleteHookKey},
			want: []string{"status", ""},
		},
		"hold without the gate: only the state": {
			pod:  podIn(normal),
			move: lifecycle.Move{To: preparingDelete, Hold: kruise.LifecyclePreDeleteHookKey},
			want: []string{""},
		},
		"hold and release: each is a write": {
			pod: podIn(updating, gate,
				condition(kruise.KruisePodReadyConditionType, "False", `[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`)),
			move: lifecycle.Move{
				To: preparingDelete, Hold: kruise.LifecyclePreDeleteHookKey, Release: kruise.LifecyclePreUpdateHookKey,
			},
			want: []string{"status", "status", ""},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := c.pod.DeepCopy()
			var got []string
			for len(got) < 5 {
				w, err := c.move.Next(pod, now)
				if err != nil {
					t.Fatal(err)
				}
				if w == nil {
					break
				}
				if data, _ := w.Data(); len(got) == 0 && c.first != "" {
					if diff := cmp.Diff(c.first, string(data)); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				got, pod = append(got, w.Subresource), sent(t, pod, w)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.move.To != "" && lifecycle.StateOf(pod) != c.move.To {
				t.Errorf("in state %s", lifecycle.StateOf(pod))
			}
			if c.move.Rehook != nil && !lifecycle.HasAll(pod, c.move.Rehook) {
				t.Errorf("%v %v", pod.Labels, pod.Finalizers)
			}
		})
	}
}

// No write of a move is accepted once another writer has changed the state, the entries or the finalizers, or once the
// name belongs to another pod.
func TestMoveIsOutdated(t *testing.T) {
	held := condition(kruise.KruisePodReadyConditionType, corev1.ConditionFalse,
		`[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`)
	pod := podIn(updated, gate, held, finalizer, versioned)
	renewed := func(p *corev1.Pod) { p.UID = "u2" }
	moved := func(p *corev1.Pod) { p.Labels[kruise.LifecycleStateKey] = string(preparingDelete) }
	message := func(p *corev1.Pod) { p.Status.Conditions[0].Message = `[{"userAgent":"x","key":"y"}]` }
	shuffled := func(p *corev1.Pod) {
		p.Status.Conditions = append([]corev1.PodCondition{{Type: "other", Status: "True"}}, p.Status.Conditions...)
	}
	finalized := func(p *corev1.Pod) { p.Finalizers = []string{"another"} }
	unlabelled := func(p *corev1.Pod) { delete(p.Labels, kruise.LifecycleStateKey) }
	release := lifecycle.Move{Release: kruise.LifecyclePreUpdateHookKey}
	rehook := lifecycle.Move{To: preparingUpdate, Rehook: &kruise.LifecycleHook{FinalizersHandler: []string{"hook/g"}}}
	cases := map[string]struct {
		move    lifecycle.Move
		changes map[string]func(*corev1.Pod)
	}{
		"readiness": {
			release,
			map[string]func(*corev1.Pod){
				"UID": renewed, "state": moved, "message": message, "order": shuffled, "no state": unlabelled,
			},
		},
		"state": {
			rehook,
			map[string]func(*corev1.Pod){"UID": renewed, "state": moved, "finalizers": finalized, "no state": unlabelled},
		},
	}
	for name, c := range cases {
		w, err := c.move.Next(pod, now)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := send(t, pod, w); !ok {
			t.Errorf("%s: the write is rejected for the pod itself", name)
		}
		for what, change := range c.changes {
			other := pod.DeepCopy()
			change(other)
			if _, ok := send(t, other, w); ok {
				t.Errorf("%s: the write is accepted although another writer changed the %s", name, what)
			}
		}
		other := pod.DeepCopy()
		other.Labels["unrelated"], other.Spec.NodeName, other.ResourceVersion = "x", "n", "8"
		if _, ok := send(t, other, w); !ok {
			t.Errorf("%s: the write is rejected after an unrelated change", name)
		}
	}
}

// A hook that holds a pod out of traffic holds it again where the entry is lost: another writer replaced the message.
func TestHoldAgain(t *testing.T) {
	entry := func(key string) func(*corev1.Pod) {
		return condition(kruise.KruisePodReadyConditionType, corev1.ConditionFalse,
			`[{"userAgent":"Lifecycle","key":"`+key+`"}]`)
	}
	lost := condition(kruise.KruisePodReadyConditionType, corev1.ConditionTrue, "[]")
	hooks := &kruise.Lifecycle{PreDelete: hook(true), InPlaceUpdate: hook(true)}
	cases := map[string]struct {
		pod   *corev1.Pod
		hooks *kruise.Lifecycle
		want  string
	}{
		"before deletion: the entry is lost": {
			pod:   podIn(preparingDelete, gate, label, lost),
			hooks: hooks,
			want:  kruise.LifecyclePreDeleteHookKey,
		},
		"before an update: the entry is lost": {
			pod:   podIn(preparingUpdate, gate, label, lost),
			hooks: hooks,
			want:  kruise.LifecyclePreUpdateHookKey,
		},
		"held before deletion: nothing is lost": {
			pod:   podIn(preparingDelete, gate, label, entry(kruise.LifecyclePreDeleteHookKey)),
			hooks: hooks,
		},
		"released: the pod is about to be deleted": {podIn(preparingDelete, gate, lost), hooks, ""},
		"no gate: the entry has no effect":         {podIn(preparingDelete, label, lost), hooks, ""},
		"hook does not mark: the pod serves meanwhile": {
			pod:   podIn(preparingDelete, gate, label, lost),
			hooks: &kruise.Lifecycle{PreDelete: hook(false)},
		},
		"no hook: the hook was removed": {podIn(preparingDelete, gate, label, lost), nil, ""},
		"unreadable: the pod is not ready already": {
			pod:   podIn(preparingDelete, gate, label, condition(kruise.KruisePodReadyConditionType, "False", "busy")),
			hooks: hooks,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := lifecycle.Situation{Pod: c.pod, Hooks: c.hooks}
			want := lifecycle.Move{Hold: c.want}
			if got := lifecycle.Settle(s); got != want {
				t.Errorf("Settle: want %+v, got %+v", want, got)
			}
			before := lifecycle.BeforeDelete
			if lifecycle.StateOf(c.pod) == preparingUpdate {
				before = lifecycle.BeforeUpdate
			}
			if _, got := before(s); got != want {
				t.Errorf("want %+v, got %+v", want, got)
			}
			if got := lifecycle.Settle(lifecycle.Situation{
				Pod: carriedOut(t, c.pod, want), Hooks: c.hooks,
			}); got != (lifecycle.Move{}) {
				t.Errorf("asked for again: %+v", got)
			}
		})
	}
}

func TestSetConditions(t *testing.T) {
	a, b := corev1.PodCondition{Type: "a", Status: "True"}, corev1.PodCondition{Type: "b", Status: "False", Message: "m"}
	for name, pod := range map[string]*corev1.Pod{
		"none":   podIn(normal, versioned),
		"others": podIn(normal, versioned, ready),
		"one":    podIn(normal, versioned, ready, condition("b", "Unknown", "")),
		"both":   podIn(normal, versioned, condition("b", "Unknown", ""), ready, condition("a", "Unknown", "old")),
	} {
		w := write.JSON(pod, write.Status, lifecycle.SetConditions(pod, a, b)...)
		got := sent(t, pod, w)
		if ca, cb := lifecycle.ConditionOf(got, "a"), lifecycle.ConditionOf(got, "b"); *ca != a || *cb != b {
			t.Errorf("%s: %+v", name, got.Status.Conditions)
		}
		types := map[corev1.PodConditionType]bool{}
		for _, c := range got.Status.Conditions {
			if types[c.Type] {
				t.Errorf("%s: %s twice", name, c.Type)
			}
			types[c.Type] = true
		}
		changed := pod.DeepCopy()
		changed.ResourceVersion = "8"
		if name == "both" {
			slices.Reverse(changed.Status.Conditions)
		}
		if _, ok := send(t, changed, w); ok {
			t.Errorf("%s: accepted for a pod with other conditions", name)
		}
	}
}

// A pod with the entry but without the gate asks for nothing: no write would follow.
func TestEntryWithoutGate(t *testing.T) {
	held := condition(kruise.KruisePodReadyConditionType, corev1.ConditionFalse,
		`[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`)
	if m := lifecycle.Settle(lifecycle.Situation{Pod: podIn(normal, held)}); m != (lifecycle.Move{}) {
		t.Errorf("%+v", m)
	}
	if m := lifecycle.Settle(lifecycle.Situation{
		Pod: podIn(updating, held), Completed: true,
	}); m.Release != "" || m.To != normal {
		t.Errorf("%+v", m)
	}
}
