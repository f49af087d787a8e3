package cloneset_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/scale"
)

// worlds is how many are drawn. Each has its number for a seed, so that it can be run alone:
//
//	go test ./controllers/cloneset -run TestRandom/seed=17 -v
//	go test ./controllers/cloneset -run TestRandom -worlds 10000
var worlds = flag.Uint64("worlds", 20, "how many random worlds to run")

// Whatever users, nodes and faults do, the rules hold after each write. In the end the user decides, and the set
// becomes as it asks for.
func TestRandom(t *testing.T) { runWorlds(t, 0, *worlds) }

func runWorlds(t *testing.T, first, n uint64) {
	t.Helper()
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := draw(t, seed)
			w.settle(3000)
			if !w.limited() {
				w.settled()
			}
		})
	}
}

// limited reports whether the set stands still because the user wants no pods to be created while others are not
// available, and none to be updated while pods are missing. A user has to raise one of these limits.
func (w *world) limited() bool {
	codes := map[string]bool{}
	for _, n := range w.tale.notes {
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
	// bad means that there is a template that never becomes ready.
	bad bool
}

func draw(t *testing.T, seed uint64) *world {
	t.Helper()
	l := &lot{Rand: rand.New(rand.NewPCG(seed, 2))}
	s := l.settings()
	l.daemon = s.daemon
	w := newWorld(t, seed, s, l.set())
	for range 2 + l.IntN(8) {
		w.script[1+l.IntN(120)] = l.event(w)
	}
	w.script[121] = l.decision(w)
	return w
}

// one reports whether one of n chances was drawn.
func (l *lot) one(of int) bool { return l.IntN(of) == 0 }

func (l *lot) settings() settings {
	s := settings{
		nodes: 1 + l.IntN(4), delay: 1 + l.IntN(5), end: l.IntN(4), slow: l.IntN(3), hookDelay: l.IntN(8), daemon: l.one(4),
	}
	if l.one(2) {
		s.lag = 1 + l.IntN(4)
	}
	if l.one(2) {
		s.faults = 8 + l.IntN(8)
	}
	return s
}

func (l *lot) set() *v1beta1.CloneSet {
	l.hooks = l.lifecycle()
	set := shop(int32(l.IntN(7)), l.amount(3), of(l.template()), withSurge(l.amount(2)))
	set.Spec.Lifecycle, set.Spec.MinReadySeconds = l.hooks, int32(max(l.IntN(8)-4, 0))
	if n := l.IntN(6) - 3; n > 0 {
		set.Spec.ScaleStrategy.MaxUnavailable = amount(fmt.Sprint(n))
	}
	if l.one(5) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.RecreateCloneSetPodUpdateStrategyType
	}
	if n := l.IntN(9) - 5; n > 0 {
		grace(int32(n))(set)
	}
	if l.one(2) {
		atPartition(l.amount(5))(set)
	}
	limit(set)
	return set
}

// limit makes sure that a rollout can continue.
func limit(set *v1beta1.CloneSet) {
	if l := limitsOf(set); l.MaxSurge == 0 && l.MaxUnavailable == 0 {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount("1")
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
		hooks.InPlaceUpdate = l.hook(hookLabel)
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

// event is what happens in the middle.
func (l *lot) event(w *world) func() {
	n, some, template := l.IntN(7), l.amount(4), l.template()
	does := func(says string, changes ...func(*v1beta1.CloneSet)) func() {
		return func() {
			w.tale.say("user", says)
			sets(says, append(changes, limit)...).do(w)
		}
	}
	switch l.IntN(12) {
	case 0, 1, 2, 3:
		return does("wants "+versionOf(&template.ObjectMeta), of(template))
	case 4:
		return does(fmt.Sprintf("scales to %d", n), scaled(int32(n)))
	case 5:
		return does("sets the partition to "+some, atPartition(some))
	case 6:
		return does("sets maxUnavailable to "+some, rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) {
			u.MaxUnavailable = amount(some)
		}))
	case 7:
		return does("pauses or resumes", rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Paused = !u.Paused }))
	case 8, 9:
		after := l.one(2)
		return func() { w.process.doomed, w.process.dies.after = true, after }
	case 10:
		return func() { l.any(w, w.nodes.crash) }
	}
	return func() {
		l.any(w, func(pod *corev1.Pod) {
			if n < 3 {
				w.delete(*pod)
				return
			}
			w.choose(pod.Name)
		})
	}
}

func (l *lot) any(w *world, do func(*corev1.Pod)) {
	if pods := w.live.each(); len(pods) > 0 {
		do(pods[l.IntN(len(pods))])
	}
}

// decision is what the user wants in the end: a template that works, and no more faults.
func (l *lot) decision(w *world) func() {
	last := templateOf("last")
	if l.one(4) {
		last = withEnv(last, "last")
	}
	last = l.keep(last)
	at := l.amount(5)
	if l.bad {
		at = "0" // else a pod that never becomes ready may be one that stays
	}
	return func() {
		w.process.doomed, w.process.faults.Of = false, 0
		decides := sets("decides: all at last but for "+at, of(last), atPartition(at), paused(false))
		w.tale.say("user", decides.says)
		decides.do(w)
	}
}
