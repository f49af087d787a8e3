package simulation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/scale"
)

// worlds is how many are drawn. Each has its number for a seed, so that it can be played alone.
var worlds = flag.Uint64("worlds", 150, "how many random worlds to play")

// TestRandom plays worlds in which everybody does anything at any time. In the end the user makes up her mind, and the
// world has to follow.
func TestRandom(t *testing.T) {
	for seed := range *worlds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := draw(t, seed)
			w.settle(w.end() + 3000)
			if !w.limited() {
				w.settled()
			}
		})
	}
}

// limited says that the world stands still because the user wants no pods to be made while others are not available, and
// none to be updated while pods are missing. A user has to raise one of these limits.
func (w *world) limited() bool {
	codes := map[string]bool{}
	for _, n := range w.last.plan.Notes {
		codes[n.Code] = true
	}
	return codes[scale.NoteScaleUpLimited] && (codes[scale.NoteUpdateLimited] || codes[scale.NotePaused])
}

// lot draws.
type lot struct {
	*rand.Rand
	versions int
	// made are the templates so far.
	made []corev1.PodTemplateSpec
	// hooks of all pods.
	hooks  *kruise.Lifecycle
	daemon bool
	// bad says that there is a template that never becomes ready.
	bad bool
}

func draw(t testing.TB, seed uint64) *world {
	t.Helper()
	l := &lot{Rand: rand.New(rand.NewPCG(seed, 2))}
	s := l.settings()
	l.daemon = s.daemon
	w := newWorld(t, seed, s, l.spec())
	events := 1 + l.IntN(8)
	for range events {
		w.script[1+l.IntN(150)] = l.event()
	}
	w.script[151] = l.decision()
	return w
}

// one reports whether one of n chances was drawn.
func (l *lot) one(of int) bool { return l.IntN(of) == 0 }

func (l *lot) settings() settings {
	s := settings{nodes: 1 + l.IntN(4), delay: 1 + l.IntN(5), end: l.IntN(4), slow: l.IntN(3), hook: l.IntN(8), daemon: l.one(4)}
	if l.one(2) {
		s.lag = 1 + l.IntN(4)
	}
	if l.one(4) {
		s.policy.Resources = inplace.ResourcesAdded
	}
	if l.one(3) {
		s.policy.Unready = inplace.UnreadyAlways
	}
	return s
}

func (l *lot) spec() spec {
	s := spec{
		Replicas: int32(l.IntN(7)), MaxUnavailable: l.amount(3), MaxSurge: l.amount(2), MinReadySeconds: int32(max(l.IntN(8)-4, 0)),
		MaxUnavailableScaling: int32(max(l.IntN(6)-3, 0)), Recreate: l.one(5), GraceSeconds: int32(max(l.IntN(9)-5, 0)),
	}
	if l.one(2) {
		s.Partition = l.amount(5)
	}
	switch {
	case l.one(4):
		s.Size = 2 + l.IntN(2)
	case l.one(4):
		s.Slots, s.InOrder, s.MaxSurge = true, l.one(2), ""
	}
	limit(&s)
	l.hooks = l.lifecycle()
	s.Hooks = l.hooks
	s.Template = l.template()
	return s
}

// limit makes sure that a rollout has something to go on with.
func limit(s *spec) {
	n, err := s.limits()
	if err == nil && n.MaxSurge == 0 && n.MaxUnavailable == 0 {
		s.MaxUnavailable = "1"
	}
}

// amount is a number or a percentage.
func (l *lot) amount(most int) string {
	if l.one(3) {
		return fmt.Sprintf("%d%%", 10*l.IntN(8))
	}
	return fmt.Sprint(l.IntN(most + 1))
}

func (l *lot) lifecycle() *kruise.Lifecycle {
	if l.one(2) {
		return nil
	}
	hooks := &kruise.Lifecycle{}
	if l.one(2) {
		hooks.InPlaceUpdate = l.hook("hook")
	}
	if l.one(3) {
		hooks.PreDelete = l.hook("delete")
	}
	if l.one(3) {
		hooks.PreNormal = &kruise.LifecycleHook{LabelsHandler: map[string]string{"born": "yes"}}
	}
	return hooks
}

func (l *lot) hook(label string) *kruise.LifecycleHook {
	h := &kruise.LifecycleHook{MarkPodNotReady: l.one(2)}
	if l.one(2) {
		h.LabelsHandler = map[string]string{label: "drain"}
	} else {
		h.FinalizersHandler = []string{"shop/" + label}
	}
	return h
}

// template is a new one, of whatever kind, or one from before.
func (l *lot) template() corev1.PodTemplateSpec {
	if len(l.made) > 1 && l.one(4) {
		return l.made[l.IntN(len(l.made))]
	}
	l.versions++
	version := fmt.Sprintf("v%d", l.versions)
	t := templateOf(version)
	switch l.IntN(8) {
	case 0:
		t, l.bad = templateOf("broken"+version), true
	case 1:
		t, l.bad = templateOf("missing"+version), true
	case 2:
		t = withEnv(t, version)
	case 3, 4:
		if l.daemon {
			t = fed(t, version)
		}
	case 5:
		t.Spec.Containers[0].Image = "shop:v0" // nothing but metadata
	}
	return l.keep(t)
}

// keep gives a template what all pods have.
func (l *lot) keep(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	if l.hooks != nil {
		for _, hook := range []*kruise.LifecycleHook{l.hooks.InPlaceUpdate, l.hooks.PreDelete} {
			if hook != nil {
				t = hooked(t, hook)
			}
		}
		t.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReadyConditionType}}
	}
	l.made = append(l.made, t)
	return t
}

// event is something that happens in the middle.
func (l *lot) event() func(*world) {
	n, amount, template := l.IntN(7), l.amount(4), l.template()
	change := func(says string, f func(*spec)) func(*world) {
		return func(w *world) {
			w.tale.say("user", "%s", says)
			w.server.setSpec(func(s *spec) { f(s); limit(s) })
		}
	}
	switch l.IntN(12) {
	case 0, 1, 2, 3:
		return change("wants "+versionOf(&template.ObjectMeta), func(s *spec) { s.Template = template })
	case 4:
		return change(fmt.Sprintf("scales to %d", n), func(s *spec) { s.Replicas = int32(n) })
	case 5:
		return change("sets the partition to "+amount, func(s *spec) { s.Partition = amount })
	case 6:
		return change("sets maxUnavailable to "+amount, func(s *spec) { s.MaxUnavailable = amount })
	case 7:
		return change("pauses or resumes", func(s *spec) { s.Paused = !s.Paused })
	case 8, 9:
		return func(w *world) { w.dies.at, w.dies.after = w.writes+1+n, l.one(2) }
	case 10:
		return func(w *world) { l.any(w, w.nodes.crash) }
	}
	return func(w *world) {
		l.any(w, func(pod *corev1.Pod) {
			if n < 3 {
				w.check(w.server.delete("user", pod))
				return
			}
			w.server.choose(pod.Name, w.check)
		})
	}
}

func (l *lot) any(w *world, do func(*corev1.Pod)) {
	if pods := w.server.snapshot().pods; len(pods) > 0 {
		do(pods[l.IntN(len(pods))])
	}
}

// decision is what the user wants in the end: something that works.
func (l *lot) decision() func(*world) {
	last := templateOf("last")
	if l.one(4) {
		last = withEnv(last, "last")
	}
	last = l.keep(last)
	at := l.amount(5)
	if l.bad {
		at = "0" // else it may be the one that stays
	}
	return func(w *world) {
		w.tale.say("user", "makes up her mind: all at last but for %s", at)
		w.dies.at = 0
		w.server.setSpec(func(s *spec) { s.Template, s.Partition, s.Paused = last, at, false })
	}
}
