package rollout_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// story is what happens to sets and their pods.
type story struct {
	sets []*v1beta1.SidecarSet
	pods int
	play func(w *world)
	// restarts of each sidecar at most, whatever the controller does.
	restarts int32
}

func stories() map[string]story {
	mesh := sidecarSet("mesh", cold("proxy", "proxy:1"))
	switching := sidecarSet("mesh", hot("proxy", "proxy:1"))
	return map[string]story{
		"cold update": {[]*v1beta1.SidecarSet{mesh}, 3, func(w *world) {
			w.change("mesh", "a new image", image("proxy:2"), maxUnavailable("2"))
			w.settle()
		}, 1},
		"partition": {[]*v1beta1.SidecarSet{mesh}, 4, func(w *world) {
			w.change("mesh", "a new image for half of them", image("proxy:2"), partition("50%"), maxUnavailable("2"))
			w.settle()
			w.change("mesh", "and for the rest", partition("0"))
			w.settle()
		}, 1},
		"bad image": {[]*v1beta1.SidecarSet{mesh}, 4, func(w *world) {
			w.change("mesh", "a bad image", image("bad:1"), maxUnavailable("50%"))
			w.settle()
			w.change("mesh", "a good one", image("proxy:2"))
			w.settle()
		}, 1},
		"another name": {[]*v1beta1.SidecarSet{mesh}, 1, func(w *world) {
			w.change("mesh", "the same image, named by its registry", image("docker.io/library/proxy:1"))
			w.settle()
		}, 1},
		"hot upgrade": {[]*v1beta1.SidecarSet{switching}, 2, func(w *world) {
			w.change("mesh", "a new image", image("proxy:2"))
			w.settle()
			w.change("mesh", "and another one", image("proxy:3"))
			w.settle()
		}, 2},
		"hot upgrade with a bad image": {[]*v1beta1.SidecarSet{switching}, 2, func(w *world) {
			w.change("mesh", "a bad image", image("bad:1"))
			w.settle()
			w.change("mesh", "a good one", image("proxy:2"))
			w.settle()
		}, 2},
		"hot upgrade taken back": {[]*v1beta1.SidecarSet{switching}, 2, func(w *world) {
			w.change("mesh", "a bad image", image("bad:1"))
			w.settle()
			w.change("mesh", "the one from before", image("proxy:1"))
			w.settle()
		}, 2},
		"hot upgrade paused": {[]*v1beta1.SidecarSet{switching}, 2, func(w *world) {
			w.change("mesh", "a new image", image("proxy:2"))
			w.reconcile(w.sets[0])
			w.change("mesh", "paused in the middle", paused)
			w.settle()
			w.change("mesh", "resumed", resumed)
			w.settle()
		}, 2},
		"two sets": {[]*v1beta1.SidecarSet{mesh, sidecarSet("logs", cold("tail", "tail:1"))}, 2, func(w *world) {
			w.change("mesh", "a new image", image("proxy:2"))
			w.change("logs", "a new image", image("tail:2"))
			w.settle()
		}, 1},
		"not upgradable": {[]*v1beta1.SidecarSet{mesh, sidecarSet("logs", cold("tail", "tail:1"))}, 2, func(w *world) {
			w.change("mesh", "a variable", env)
			w.change("logs", "a variable", env)
			w.settle()
			w.change("logs", "without it, and a new image", withoutEnv, image("tail:2"))
			w.settle()
			w.change("mesh", "without it", withoutEnv)
			w.settle()
		}, 1},
		"paused after the first": {[]*v1beta1.SidecarSet{mesh}, 2, func(w *world) {
			w.change("mesh", "a new image", image("proxy:2"))
			w.reconcile(w.sets[0])
			w.change("mesh", "paused", paused)
			w.settle()
			w.change("mesh", "resumed", resumed)
			w.settle()
		}, 1},
		"selected ones first": {[]*v1beta1.SidecarSet{mesh}, 3, func(w *world) {
			w.pods[1].Labels["canary"] = "yes"
			w.change("mesh", "a new image for the canary", image("proxy:2"), only("canary", "yes"))
			w.settle()
			w.change("mesh", "and for all", func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Selector = nil })
			w.settle()
		}, 1},
	}
}

func withoutEnv(s *v1beta1.SidecarSet) {
	for i := range s.Spec.Containers {
		s.Spec.Containers[i].Env = nil
	}
}

func TestStories(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, -1, s.sets...).populate(s.pods)
			s.play(w)
			golden(t, name, w.tale)
			calm(t, w, s.restarts)
		})
	}
}

// calm checks that no container has restarted more often than it had to, and that nothing is left to do.
func calm(t *testing.T, w *world, restarts int32) {
	t.Helper()
	for _, pod := range w.pods {
		for _, s := range pod.Status.ContainerStatuses {
			if s.RestartCount > restarts || s.Name == "main" && s.RestartCount > 0 {
				t.Errorf("%s/%s restarted %d times", pod.Name, s.Name, s.RestartCount)
			}
		}
	}
	before := w.writes
	w.settle()
	if w.writes != before {
		t.Errorf("a settled world is written %d times", w.writes-before)
	}
}

// TestCrashes plays each story with a controller that dies at one of its writes, each of them in turn. Another one,
// which remembers nothing, brings the pods to the same end.
func TestCrashes(t *testing.T) {
	for name, s := range stories() {
		t.Run(name, func(t *testing.T) {
			alive := newWorld(t, -1, s.sets...).populate(s.pods)
			s.play(alive)
			want := end(alive)
			for n := range alive.writes {
				w := newWorld(t, n, s.sets...).populate(s.pods)
				s.play(w)
				if diff := cmp.Diff(want, end(w)); diff != "" {
					t.Fatalf("dead before write %d (-alive +dead):\n%s\n%s", n, diff, strings.Join(w.tale, "\n"))
				}
				calm(t, w, s.restarts)
			}
		})
	}
}

// end is how the pods are.
func end(w *world) []string {
	var all []string
	for _, pod := range w.pods {
		all = append(all, picture(pod), states(pod))
	}
	return all
}

func states(pod *corev1.Pod) string {
	text := ""
	for _, s := range pod.Status.ContainerStatuses {
		text += s.Name + " " + s.ImageID + " "
	}
	return text
}
