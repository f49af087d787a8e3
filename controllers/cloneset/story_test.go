package cloneset_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/test/storytest"
)

// story is one rollout.
type story struct {
	// shows is the comment at its top.
	shows    string
	settings settings
	set      *v1beta1.CloneSet
	// then are the deeds of the user, each once the world has settled, or after some ticks.
	then []deed
	// stands says that the set does not become as it asks for, and that a note of this code explains why.
	stands string
	// alike says that another story makes the same kinds of writes: TestDeath leaves this one out.
	alike bool
	// writes is how many each update in place takes; 0 where the story shows something else.
	writes int
}

// deed is what the user does.
type deed struct {
	says string
	// after is how many ticks to wait; 0 to wait until the world has settled.
	after int
	do    func(*world)
}

// seedOfStories makes each run of the stories the same.
const seedOfStories = 1

func (s *story) play(t *testing.T, seed uint64) *world {
	t.Helper()
	w := newWorld(t, seed, s.settings, s.set)
	s.run(w)
	return w
}

func (s *story) run(w *world) {
	w.Helper()
	version := versionOf(&s.set.Spec.Template.ObjectMeta)
	w.tale.say("user", fmt.Sprintf("creates a set of %d at %s", *s.set.Spec.Replicas, version))
	for _, d := range s.then {
		if d.after == 0 {
			w.settled()
		}
		for range d.after {
			w.step()
		}
		w.tale.say("user", d.says)
		w.tale.as("user", func() { d.do(w) })
	}
	if s.stands == "" {
		w.settled()
		return
	}
	w.settle(w.tick + 3000)
	if w.missing() == "" {
		w.fail("the set becomes as it asks for, although it should not")
	}
	if !slices.ContainsFunc(w.tale.notes, func(n note.Note) bool { return n.Code == s.stands }) {
		w.fail("the world stands still, and no note %s explains why", s.stands)
	}
}

// Each story is the log of one rollout by the reconciler, with a comment on what the rollout shows.
func TestStories(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			w := s.play(t, seedOfStories)
			for _, n := range w.rules.counted {
				if s.writes > 0 && n != s.writes {
					t.Errorf("%d writes for an update in place, want %d", n, s.writes)
				}
			}
			if s.writes > 0 && len(w.rules.counted) == 0 {
				t.Error("nothing was updated in place")
			}
			shows := "# " + strings.ReplaceAll(strings.TrimSpace(s.shows), "\n", "\n# ")
			storytest.Compare(t, name, shows+"\n\n"+w.tale.text())
		})
	}
}

// A rollback during the grace period restarts nothing, whatever the limits: the containers have not changed yet.
func TestRollbackInGrace(t *testing.T) {
	back := wants("v1").in(5)
	for name, rollback := range map[string]struct {
		set  *v1beta1.CloneSet
		back deed
	}{
		"all at once": {shop(6, "6", grace(10)), back},
		"two by two":  {shop(6, "2", grace(10)), back},
		"partition":   {shop(6, "6", grace(10), atPartition("3")), setsPartition("6").in(5)},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				s := story{set: rollback.set, then: []deed{wants("v2"), rollback.back}}
				w := s.play(t, seed)
				for name, pod := range w.live.pods {
					for _, c := range pod.Status.ContainerStatuses {
						if c.RestartCount > 0 {
							t.Errorf("seed %d: a container of %s restarted:\n%s", seed, name, w.tale.text())
						}
					}
					if got := pod.Spec.Containers[0].Image; got != "shop:v1" {
						t.Errorf("seed %d: %s has %s", seed, name, got)
					}
				}
			}
		})
	}
}

// The process of the reconciler dies at each kind of write of the stories: before the server applies the write, and
// after. The story ends as if nothing had happened. To die before a write is to die after the write before it of the
// same pass, so only the first write of a pass is tried.
func TestDeath(t *testing.T) { runDeaths(t, false) }

// runDeaths also tries writes of the same kinds where each write is asked for.
func runDeaths(t *testing.T, each bool) {
	t.Helper()
	all, tried := stories(), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			s := all[name]
			if s.alike && !each {
				t.Skip("another story makes the same kinds of writes")
			}
			whole := s.play(t, seedOfStories)
			before := ""
			for _, one := range whole.process.writes {
				if one.first {
					before = ""
				}
				after := before + ", " + one.kind
				if before = one.kind; each || !tried[after] {
					s.playDead(t, whole, one.name, true)
				}
				if first := "first, " + one.kind; one.first && (each || !tried[first]) {
					tried[first] = true
					s.playDead(t, whole, one.name, false)
				}
				tried[after] = true
			}
		})
	}
}

// playDead plays a story with a process that dies at a write, and compares the end with how the story ends else.
func (s *story) playDead(t *testing.T, whole *world, at string, after bool) {
	t.Helper()
	w := newWorld(t, seedOfStories, s.settings, s.set)
	w.process.dies.at, w.process.dies.after = at, after
	s.run(w)
	if w.process.deaths != 1 {
		w.fail("the process dies %d times, at %s", w.process.deaths, at)
	}
	hurried := slices.ContainsFunc(s.then, func(d deed) bool { return d.after > 0 })
	if diff := cmp.Diff(whole.outcome(hurried), w.outcome(hurried)); diff != "" {
		w.fail("another end after death at %s, after it: %v (-whole +got):\n%s", at, after, diff)
	}
}

// outcome is what counts in the end. Where the user acts in the middle of a rollout, which pods are created, and how
// often containers restart, depends on how far the rollout has come.
func (w *world) outcome(hurried bool) string {
	var lines []string
	for _, pod := range w.live.pods {
		text := fmt.Sprintf("%s %s", versionOf(&pod.ObjectMeta), stateOf(&pod.ObjectMeta))
		for _, c := range pod.Status.ContainerStatuses {
			text += " " + c.Image
			if !hurried {
				text += fmt.Sprintf(", restarted %d times", c.RestartCount)
			}
		}
		for _, gate := range pod.Spec.ReadinessGates {
			text += fmt.Sprintf(" %s=%s", gate.ConditionType, conditionOf(pod, gate.ConditionType))
		}
		lines = append(lines, text)
	}
	slices.Sort(lines)
	if !hurried {
		lines = append(lines, fmt.Sprintf("%d pods were created", w.rules.created))
	}
	return strings.Join(lines, "\n")
}

// sets changes the set.
func sets(says string, changes ...func(*v1beta1.CloneSet)) deed {
	return deed{says: says, do: func(w *world) {
		w.change(w.set, func(s *v1beta1.CloneSet) {
			for _, change := range changes {
				change(s)
			}
		})
	}}
}

// in waits only for some ticks, whatever is under way then.
func (d deed) in(ticks int) deed {
	d.after = ticks
	return d
}

// and does something else at the same time.
func (d deed) and(do func(*world)) deed {
	first := d.do
	d.do = func(w *world) { first(w); do(w) }
	return d
}

func wants(version string) deed {
	return sets("wants "+version, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Annotations[versionKey] = version
		s.Spec.Template.Spec.Containers = templateOf(version).Spec.Containers
	})
}

func setsPartition(at string) deed { return sets("sets the partition to "+at, atPartition(at)) }

func chooses(name string) deed {
	return deed{says: "chooses " + name + " for deletion", do: func(w *world) { w.choose(name) }}
}

// choose marks a pod, which is deleted within the budget.
func (w *world) choose(name string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, kruise.SpecifiedDeleteKey)
	if err := w.server.Patch(w.Context(), pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.fail("%v", err)
	}
}

// shop is a set whose pods are updated in place where possible.
func shop(replicas int32, maxUnavailable string, changes ...func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"}}
	set.Spec.Replicas = &replicas
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	set.Spec.Template = templateOf("v1")
	inPlace(set)
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = amount(maxUnavailable)
	for _, change := range changes {
		change(set)
	}
	return set
}

func amount(text string) *intstr.IntOrString {
	if text == "" {
		text = "0"
	}
	v := intstr.Parse(text)
	return &v
}

func rolling(change func(*v1beta1.RollingUpdateCloneSetStrategy)) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { change(s.Spec.UpdateStrategy.RollingUpdate) }
}

func grace(seconds int32) func(*v1beta1.CloneSet) {
	return rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) {
		u.InPlaceUpdateStrategy = &kruise.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	})
}

func atPartition(at string) func(*v1beta1.CloneSet) {
	return rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Partition = amount(at) })
}

func withSurge(n string) func(*v1beta1.CloneSet) {
	return rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.MaxSurge = amount(n) })
}

func paused(is bool) func(*v1beta1.CloneSet) {
	return rolling(func(u *v1beta1.RollingUpdateCloneSetStrategy) { u.Paused = is })
}

func scaled(replicas int32) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Replicas = &replicas }
}

func of(t corev1.PodTemplateSpec) func(*v1beta1.CloneSet) {
	return func(s *v1beta1.CloneSet) { s.Spec.Template = *t.DeepCopy() }
}

// templateOf is a pod that serves, of one container. An image of broken... never becomes ready, one of missing... does
// not exist.
func templateOf(version string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"app": "shop"}, Annotations: map[string]string{versionKey: version},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:" + version}}},
	}
}

// withEnv changes what only a new pod takes.
func withEnv(t corev1.PodTemplateSpec, value string) corev1.PodTemplateSpec {
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: value}}
	return t
}

// fed gives the container a variable that a label feeds.
func fed(t corev1.PodTemplateSpec, value string) corev1.PodTemplateSpec {
	t.Labels = map[string]string{"app": "shop", "level": value}
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['level']"},
	}}}
	return t
}

// hooked gives new pods what a hook holds them by.
func hooked(t corev1.PodTemplateSpec, hooks ...*kruise.LifecycleHook) corev1.PodTemplateSpec {
	for _, h := range hooks {
		maps.Copy(t.Labels, h.LabelsHandler)
		t.Finalizers = append(t.Finalizers, h.FinalizersHandler...)
	}
	return t
}
