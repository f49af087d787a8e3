package rollout_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
	"github.com/kruisekit/kruisekit/lifecycle"
	"github.com/kruisekit/kruisekit/scale"
)

var update = flag.Bool("update", false, "rewrites the told stories")

// world is some sets, their pods, a kubelet that is not quick, and a controller that may die at any write.
type world struct {
	t    *testing.T
	sets []*v1beta1.SidecarSet
	pods []*corev1.Pod
	now  time.Time
	// left is how many writes the controller makes before it dies, once; below zero it lives on.
	left   int
	writes int
	tale   []string
}

func newWorld(t *testing.T, crash int, sets ...*v1beta1.SidecarSet) *world {
	t.Helper()
	return &world{t: t, sets: slices.Clone(sets), now: noon(), left: crash}
}

// populate makes n pods with all sets.
func (w *world) populate(n int) *world {
	for i := range n {
		w.pods = append(w.pods, podOf(string(rune('a'+i)), w.sets...))
	}
	return w
}

func (w *world) tell(format string, args ...any) {
	w.tale = append(w.tale, fmt.Sprintf(format, args...))
}

// change edits a set.
func (w *world) change(name, why string, changes ...setChange) {
	for i, set := range w.sets {
		if set.Name == name {
			w.sets[i] = edited(set, changes...)
			w.tell("-- %s: %s", name, why)
		}
	}
}

// settle lets controller and kubelet take turns until neither has anything to do.
func (w *world) settle() {
	for range 200 {
		w.now = w.now.Add(time.Second)
		acted := false
		for _, set := range w.sets {
			acted = w.reconcile(set) || acted
		}
		if !w.kubelet() && !acted {
			w.status()
			return
		}
	}
	w.t.Fatalf("the world does not come to rest:\n%s", strings.Join(w.tale[max(0, len(w.tale)-20):], "\n"))
}

// reconcile is one pass of the controller for a set.
func (w *world) reconcile(set *v1beta1.SidecarSet) bool {
	in := input(set, w.pods...)
	in.Now = w.now
	pass, err := rollout.Plan(in)
	if err != nil {
		w.t.Fatal(err)
	}
	notes := pass.Notes()
	w.check(set, pass.Result())
	var lines []string
	dead := false
	for changes := pass.Next(); len(changes) > 0 && !dead; changes = pass.Next() {
		for len(changes) > 0 && !dead {
			c := changes[0]
			if dead = w.left == 0; dead {
				break
			}
			pod := w.put(c)
			lines = append(lines, told(c, pod, set)+" "+pod.Name)
			changes = append(pass.Answer(w.now, c, pod, nil), changes[1:]...)
		}
	}
	if dead {
		w.left = -1 // another one takes over
		lines = append(lines, "and dies")
	}
	if len(lines) > 0 {
		w.tell("%s: %s", set.Name, strings.Join(lines, ", "))
		for _, n := range notes {
			w.tell("    %s", strings.TrimSpace(n.Code+" "+n.Object)+": "+n.Text)
		}
	}
	return len(lines) > 0
}

// put stores a change.
func (w *world) put(c *rollout.Change) *corev1.Pod {
	w.t.Helper()
	at := slices.IndexFunc(w.pods, func(p *corev1.Pod) bool { return p.UID == c.Pod.UID })
	pod, err := appliedTo(w.pods[at], c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.left, w.writes = w.left-1, w.writes+1
	w.pods[at] = pod
	return pod
}

// told names a change in stories.
func told(c *rollout.Change, after *corev1.Pod, set *v1beta1.SidecarSet) string {
	switch c.Action {
	case rollout.ActionReset:
		return "flip"
	case rollout.ActionUpdate:
		return "update"
	}
	message := lifecycle.ConditionOf(after, kruise.SidecarSetUpgradable).Message
	return fmt.Sprintf("mark %t", strings.Contains(message, `"`+set.Name+`":true`))
}

// check asserts the bounds of a plan.
func (w *world) check(set *v1beta1.SidecarSet, plan rollout.Result) {
	w.t.Helper()
	matched := plan.Status.MatchedPods
	kept, err := scale.Partition(set.Spec.UpdateStrategy.Partition, matched)
	if err != nil {
		w.t.Fatal(err)
	}
	budget, err := scale.AmountOr(set.Spec.UpdateStrategy.MaxUnavailable, 1, matched, scale.RoundUp)
	if err != nil {
		w.t.Fatal(err)
	}
	old, n := matched-plan.Status.UpdatedPods, int32(len(plan.Updates))
	if n > 0 && old-n < kept {
		w.t.Errorf("%d of %d old pods are updated, %d are to stay", n, old, kept)
	}
	unready := plan.Status.UpdatedPods - plan.Status.UpdatedReadyPods
	ready := int32(0)
	for _, u := range plan.Updates {
		if readyCondition(u.Pod) {
			ready++
		}
	}
	if ready > 0 && unready+ready > max(budget, unready) {
		w.t.Errorf("%d ready pods are updated while %d are unready, and %d may be", ready, unready, budget)
	}
}

func readyCondition(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// kubelet notices one container that does not run its image, and says whether there was any.
func (w *world) kubelet() bool {
	for i, old := range w.pods {
		for _, c := range old.Spec.Containers {
			s := old.Status.ContainerStatuses[slices.IndexFunc(old.Status.ContainerStatuses,
				func(s corev1.ContainerStatus) bool { return s.Name == c.Name })]
			bad := strings.HasPrefix(c.Image, "bad")
			if !bad && s.ImageID == imageID(c.Image) && s.Image == "docker.io/library/"+c.Image && s.Ready || bad && !s.Ready {
				continue
			}
			pod := old.DeepCopy()
			if bad {
				failed(pod, c.Name)
				w.tell("kubelet: %s/%s cannot run %s", pod.Name, c.Name, c.Image)
			} else {
				restart(pod, c.Name)
				w.tell("kubelet: %s/%s runs %s", pod.Name, c.Name, c.Image)
			}
			w.pods[i] = readied(pod)
			return true
		}
	}
	return false
}

// status tells where the sets and their pods are.
func (w *world) status() {
	for _, set := range w.sets {
		s, err := status(input(set, w.pods...))
		if err != nil {
			w.t.Fatal(err)
		}
		w.tell("%s: %d matched, %d updated, %d ready, %d both", set.Name, s.MatchedPods, s.UpdatedPods,
			s.ReadyPods, s.UpdatedReadyPods)
	}
	for _, pod := range w.pods {
		w.tell("    %s", strings.TrimSpace(picture(pod)))
	}
}

// picture is what of a pod matters in the end: its images, what works, versions, restarts and its condition.
func picture(pod *corev1.Pod) string {
	text := pod.Name + ":"
	for _, c := range pod.Spec.Containers {
		if c.Name == "main" {
			continue
		}
		text += " " + c.Name + "=" + c.Image
		if v, ok := pod.Annotations[kruise.SidecarSetVersionKeyPrefix+c.Name]; ok {
			text += "(" + v + "/" + pod.Annotations[kruise.SidecarSetVersionAltKeyPrefix+c.Name] + ")"
		}
	}
	working := map[string]string{}
	if json.Unmarshal([]byte(pod.Annotations[kruise.SidecarSetWorkingHotUpgradeContainerKey]), &working) == nil {
		for _, name := range slices.Sorted(maps.Keys(working)) {
			text += " " + working[name] + " works"
		}
	}
	return text + " " + upgradable(pod)
}

// golden compares a story with the one that was told before.
func golden(t *testing.T, name string, tale []string) {
	t.Helper()
	file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
	got := strings.Join(tale, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("another story than before (-update accepts it; -want +got):\n%s", diff)
	}
}
