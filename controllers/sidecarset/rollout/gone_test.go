package rollout_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/controllers/sidecarset/rollout"
)

// asked answers the questions of a pass, and returns the names that were asked about, and the changes that come after.
func asked(pass *rollout.Pass, answer func(set string) error) (names []string, changes []*rollout.Change) {
	for changes = pass.Next(); len(changes) > 0 && changes[0].Action == rollout.ActionAsk; changes = pass.Next() {
		for _, c := range changes {
			names = append(names, c.Object.GetName())
			pass.Answer(noon(), c, nil, answer(c.Object.GetName()))
		}
	}
	return names, changes
}

// TestGone: a pass asks about the sets that pods record and that are not known, before the first change.
func TestGone(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	const one, other = `"z":{"revision":"x"}`, `"y":{"revision":"x"}`
	for name, c := range map[string]struct {
		why    string
		gone   map[string]bool
		answer error
		asked  []string
		left   bool
	}{
		"a set that exists":  {why: "nothing is asked", gone: map[string]bool{"y": false, "z": false}, left: true},
		"a set that is gone": {why: "the record of it is removed", gone: map[string]bool{"y": false, "z": true}},
		"a set not known": {
			why: "the API server knows", gone: map[string]bool{"y": false}, answer: missing(), asked: []string{"z"},
		},
		"a set only cached late": {why: "it exists", gone: map[string]bool{"y": false}, asked: []string{"z"}, left: true},
		"no answer": {
			why: "when in doubt the set exists", gone: map[string]bool{"y": false}, answer: errors.New("connection reset"),
			asked: []string{"z"}, left: true,
		},
		"nothing known at all": {why: "nothing is asked, and all is kept", left: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("a", before)
			pod.Annotations[kruise.SidecarSetInPlaceUpdateStateKey] = "{" + one + "," + other + "}"
			in := input(edited(before, image("mesh:2")), pod)
			in.Gone = c.gone
			pass, err := rollout.Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			names, changes := asked(pass, func(string) error { return c.answer })
			if !slices.Equal(names, c.asked) || len(changes) != 1 || changes[0].Action != rollout.ActionUpdate {
				t.Fatalf("%s: asked about %v, then %v", c.why, names, changes)
			}
			written := annotationsOf(changes[0])[kruise.SidecarSetInPlaceUpdateStateKey]
			if left := slices.Contains(recordedSets(t, written), "z"); left != c.left ||
				!slices.Contains(recordedSets(t, written), "y") {
				t.Errorf("%s: %s", c.why, written)
			}
		})
	}
}

// TestQuestionsAreFew: the owner of a pod may write any number of names.
func TestQuestionsAreFew(t *testing.T) {
	before := sidecarSet("s", cold("mesh", "mesh:1"))
	pod, message := podOf("a", before), `{"s":false`
	for i := range 100 {
		message += fmt.Sprintf(`,"z%d":false`, i)
	}
	setCondition(pod, corev1.PodCondition{
		Type: kruise.SidecarSetUpgradable, Status: corev1.ConditionFalse, Message: message + "}",
	})
	in := input(edited(before, image("mesh:2")), pod)
	in.Gone = map[string]bool{}
	pass, err := rollout.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	if names, changes := asked(pass, func(string) error { return missing() }); len(names) != 16 || len(changes) != 1 {
		t.Errorf("asked about %v, then %d changes", names, len(changes))
	}
}

// TestRelease: only a set that the API server lacks is removed from the conditions of pods.
func TestRelease(t *testing.T) {
	for name, c := range map[string]struct {
		why, message string
		answer       error
		asked, want  int
	}{
		"a set that is gone": {
			why: "it holds up no other set", message: `{"s":false}`, answer: missing(), asked: 1, want: 1,
		},
		"a set that is there": {why: "the cache lacks it", message: `{"s":false}`, asked: 1},
		"no answer": {
			why: "when in doubt the set exists", message: `{"s":false}`, answer: errors.New("reset"), asked: 1,
		},
		"a set without a trouble": {why: "there is nothing to write, and nothing to ask", message: `{"s":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("a", sidecarSet("s", cold("mesh", "mesh:1")))
			setCondition(pod, corev1.PodCondition{
				Type: kruise.SidecarSetUpgradable, Status: corev1.ConditionFalse, Message: c.message,
			})
			pass := rollout.Release([]*corev1.Pod{pod}, "s", noon())
			names, changes := asked(pass, func(string) error { return c.answer })
			if len(names) != c.asked || len(changes) != c.want {
				t.Fatalf("%s: %d questions, %d changes", c.why, len(names), len(changes))
			}
			for _, change := range changes {
				pass.Answer(noon(), change, nil, untested())
			}
			if after := pass.RequeueAfter(); (after == rollout.RetryOutdated) != (c.want > 0) || pass.Err() != nil ||
				pass.Next() != nil {
				t.Errorf("%s: again after %s: %v", c.why, after, pass.Err())
			}
		})
	}
}
