package rollout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/sidecar/rollout"
)

// A pass: what is refused makes room for the next pods, and what is outdated is planned again as it is.
func TestFollow(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"), maxUnavailable("1"))
	start := func() rollout.Input {
		return input(edited(before, image("mesh:2")), fleet(before, before, 3, 0, 0)...)
	}
	t.Run("a refused update makes room", func(t *testing.T) {
		in := start()
		first := compute(t, in)
		following, again := in.Follow([]rollout.Answer{{Refused: first.Update[0].Pod.UID}})
		second := compute(t, following)
		if !again || len(second.Update) != 1 || second.Update[0].Pod.Name == first.Update[0].Pod.Name {
			t.Errorf("again %t: %v after %v", again, updated(second), updated(first))
		}
		if second.RequeueAfter != rollout.RefusalPause || !slices.ContainsFunc(second.Notes, func(n rollout.Note) bool { return n.Code == rollout.NoteRefused }) {
			t.Errorf("the pod is planned again after %s, noted %v", second.RequeueAfter, second.Notes)
		}
		following.Now = following.Now.Add(rollout.RefusalPause)
		if third := compute(t, following); !slices.Equal(updated(third), updated(first)) || third.RequeueAfter != 0 {
			t.Errorf("after the pause: %v, %s", updated(third), third.RequeueAfter)
		}
		if len(in.Held) != 0 {
			t.Error("the input was changed")
		}
	})
	t.Run("an answered update counts", func(t *testing.T) {
		in := start()
		first := compute(t, in)
		following, again := in.Follow([]rollout.Answer{{Pod: first.Update[0].Apply()}})
		if second := compute(t, following); again || len(second.Update) != 0 {
			t.Errorf("again %t: %v", again, updated(second))
		}
		if status, err := rollout.Count(following); err != nil || status.UpdatedPods != 1 {
			t.Errorf("%d are updated, %v", status.UpdatedPods, err)
		}
	})
	t.Run("an outdated pod is planned as it is", func(t *testing.T) {
		in := start()
		first := compute(t, in)
		live := first.Update[0].Pod.DeepCopy()
		live.Annotations["other"] = "set"
		following, again := in.Follow([]rollout.Answer{{Pod: live, Outdated: true}})
		if second := compute(t, following); !again || second.Update[0].Pod != live {
			t.Errorf("again %t: %v", again, updated(second))
		}
	})
	t.Run("a hook that refuses is asked again", func(t *testing.T) {
		in := start()
		in.May = func(*corev1.Pod) (bool, string) { return false, "not now" }
		if p := compute(t, in); len(p.Update) != 0 || p.RequeueAfter != time.Second {
			t.Errorf("%v, again after %s", updated(p), p.RequeueAfter)
		}
	})
}

func TestIsOutdated(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a", Annotations: map[string]string{"kept": "x", "changed": "1"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "mesh", Image: "mesh:1"}}
	w := rollout.Write{Pod: pod, Annotations: map[string]string{"changed": "2", "new": "1"}}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing":                     {func(*corev1.Pod) {}, false},
		"a status":                    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"an annotation of no concern": {func(p *corev1.Pod) { p.Annotations["kept"] = "y" }, false},
		"an annotation of the write":  {func(p *corev1.Pod) { p.Annotations["changed"] = "3" }, true},
		"its end":                     {func(p *corev1.Pod) { delete(p.Annotations, "changed") }, true},
		"its beginning":               {func(p *corev1.Pod) { p.Annotations["new"] = "" }, true},
		"an image":                    {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mesh:3" }, true},
		"another pod of the name":     {func(p *corev1.Pod) { p.UID = types.UID("b") }, true},
	} {
		live := pod.DeepCopy()
		c.change(live)
		if got := w.IsOutdated(live); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestFailures(t *testing.T) {
	unreadable := rollout.Note{Code: rollout.NoteUnreadable, Object: "shop/b", Text: "odd"}
	refused := errors.New("update pod shop/a: no")
	for name, c := range map[string]struct {
		plan    rollout.Plan
		refused []error
		want    string
	}{
		"none":                    {rollout.Plan{Notes: []rollout.Note{{Code: rollout.NotePaused}}}, nil, ""},
		"a pod cannot be read":    {rollout.Plan{Notes: []rollout.Note{unreadable}}, nil, "pod shop/b: odd"},
		"a write was refused":     {rollout.Plan{}, []error{refused}, "update pod shop/a: no"},
		"several, in their order": {rollout.Plan{Notes: []rollout.Note{unreadable}}, []error{refused}, "pod shop/b: odd (and 1 more)"},
		"a long one":              {rollout.Plan{}, []error{errors.New(strings.Repeat("é", 900))}, strings.Repeat("é", 500)},
	} {
		if got := c.plan.Failures(c.refused); got != c.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
	marks := []rollout.Mark{{New: true}, {}, {Upgradable: true, New: true}}
	if n := (rollout.Plan{Mark: marks}).NewlyBlocked(); n != 1 {
		t.Errorf("%d pods are newly blocked", n)
	}
}

// Updates that wait are reported once in a generation, when they have made no step for a while.
func TestStall(t *testing.T) {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	limited := rollout.Plan{Notes: []rollout.Note{{Code: rollout.NoteUpdateLimited, Text: "2 pods wait"}}}
	now, stall := time.Unix(1000, 0), rollout.Stall{}
	for i, step := range []struct {
		why   string
		later time.Duration
		do    func()
		text  string
		after time.Duration
	}{
		{"they begin to wait", 0, func() {}, "", time.Minute},
		{"they wait", 30 * time.Second, func() {}, "", 30 * time.Second},
		{"a step", 20 * time.Second, func() { limited.Status.UpdatedReadyPods++ }, "", time.Minute},
		{"no step for a minute", time.Minute, func() {}, "2 pods wait", 0},
		{"it was reported", time.Minute, func() {}, "", 0},
		{"another spec", time.Second, func() { set.Generation++ }, "", time.Minute},
		{"none waits", time.Minute, func() { limited.Notes[0].Code = rollout.NotePartition }, "", 0},
		{"they wait again", time.Second, func() { limited.Notes[0].Code = rollout.NoteUpdateLimited }, "", time.Minute},
		{"and are reported", 2 * time.Minute, func() {}, "2 pods wait", 0},
	} {
		now = now.Add(step.later)
		step.do()
		var text string
		var after time.Duration
		stall, text, after = stall.Next(set, limited, now, time.Minute)
		if text != step.text || after != step.after {
			t.Errorf("step %d, %s: got %q, look again after %s", i, step.why, text, after)
		}
	}
}
